// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/tap"
)

// survey is what guise must know of the host's network before it joins it.
type survey struct {
	names   map[string]bool // of all interfaces
	others  []string        // those that are neither loopback nor a stack's tap
	taken   taken           // what the host has, and the name servers
	servers taken           // the host's name servers alone
	stacks  taken           // what the host has on the taps of stacks
	ipv6    bool            // there is IPv6 beyond this host
	mtu     int             // of the way out, at most Ethernet's 1500
}

func surveyHost() (*survey, error) {
	s := &survey{names: map[string]bool{}, mtu: 1500}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's interfaces: %w", err)
	}
	own := map[int]bool{}
	taps := map[int]bool{}
	mtus := map[int]int{}
	for _, l := range links {
		a := l.Attrs()
		s.names[a.Name] = true
		mtus[a.Index] = a.MTU
		taps[a.Index] = strings.HasPrefix(a.Name, tap.Prefix)
		own[a.Index] = a.Flags&net.FlagLoopback != 0 || taps[a.Index]
		if !own[a.Index] {
			s.others = append(s.others, a.Name)
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's addresses: %w", err)
	}
	for _, a := range addresses {
		s.take(a.IPNet, taps[a.LinkIndex])
		if a.IP.To4() == nil && a.Scope == unix.RT_SCOPE_UNIVERSE && !own[a.LinkIndex] {
			s.ipv6 = true
		}
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL,
		&netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's routes: %w", err)
	}
	for _, r := range routes {
		s.take(r.Dst, taps[r.LinkIndex])
		if out, ok := mtus[r.LinkIndex]; ok && isDefault(r.Dst) && out > 0 && out < s.mtu {
			s.mtu = out
		}
	}
	servers, _ := Resolvers()
	for _, r := range servers {
		r = r.WithZone("")
		s.servers = append(s.servers, netip.PrefixFrom(r, r.BitLen()))
	}
	s.taken = append(s.taken, s.servers...)
	return s, nil
}

func isDefault(dst *net.IPNet) bool {
	if dst == nil {
		return true
	}
	ones, _ := dst.Mask.Size()
	return ones == 0
}

func (s *survey) take(n *net.IPNet, stacks bool) {
	if n == nil {
		return
	}
	if addr, ok := netip.AddrFromSlice(n.IP); ok {
		ones, _ := n.Mask.Size()
		if p := netip.PrefixFrom(addr.Unmap(), ones); p.IsValid() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() {
			s.taken = append(s.taken, p)
			if stacks {
				s.stacks = append(s.stacks, p)
			}
		}
	}
}

// freeName is the first name for a tap that no interface has.
func (s *survey) freeName() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s%d", tap.Prefix, i)
		if !s.names[name] {
			s.names[name] = true
			return name
		}
	}
}
