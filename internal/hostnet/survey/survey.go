// SPDX-License-Identifier: GPL-2.0-only

// Package survey reads the host's interfaces, addresses and routes, and finds
// networks that the host does not use.
package survey

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/tap"
)

// Survey is what was found.
type Survey struct {
	Names   map[string]bool // of all interfaces
	Others  []string        // the interfaces except loopback and the taps of stacks
	Taken   Networks        // the host's networks, and its name servers
	Servers Networks        // the host's name servers alone
	Stacks  Networks        // the host's networks on the taps of stacks
	IPv6    bool            // one of Others has a global IPv6 address
	MTU     int             // of the way out, at most Ethernet's 1500
}

// Host surveys the network namespace of this thread.
func Host() (*Survey, error) {
	s := &Survey{Names: map[string]bool{}, MTU: 1500}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's interfaces: %w", err)
	}
	own := map[int]bool{}
	taps := map[int]bool{}
	mtus := map[int]int{}
	for _, l := range links {
		a := l.Attrs()
		s.Names[a.Name] = true
		mtus[a.Index] = a.MTU
		taps[a.Index] = strings.HasPrefix(a.Name, tap.Prefix)
		own[a.Index] = a.Flags&net.FlagLoopback != 0 || taps[a.Index]
		if !own[a.Index] {
			s.Others = append(s.Others, a.Name)
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's addresses: %w", err)
	}
	for _, a := range addresses {
		s.take(a.IPNet, taps[a.LinkIndex])
		if a.IP.To4() == nil && a.Scope == unix.RT_SCOPE_UNIVERSE && !own[a.LinkIndex] {
			s.IPv6 = true
		}
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL,
		&netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's routes: %w", err)
	}
	for _, r := range routes {
		s.take(r.Dst, taps[r.LinkIndex])
		if out, ok := mtus[r.LinkIndex]; ok && isDefault(r.Dst) && out > 0 && out < s.MTU {
			s.MTU = out
		}
	}
	servers, _ := Resolvers()
	for _, r := range servers {
		r = r.WithZone("")
		s.Servers = append(s.Servers, netip.PrefixFrom(r, r.BitLen()))
	}
	s.Taken = append(s.Taken, s.Servers...)
	return s, nil
}

func isDefault(dst *net.IPNet) bool {
	if dst == nil {
		return true
	}
	ones, _ := dst.Mask.Size()
	return ones == 0
}

func (s *Survey) take(n *net.IPNet, stacks bool) {
	if n == nil {
		return
	}
	if addr, ok := netip.AddrFromSlice(n.IP); ok {
		ones, _ := n.Mask.Size()
		if p := netip.PrefixFrom(addr.Unmap(), ones); p.IsValid() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() {
			s.Taken = append(s.Taken, p)
			if stacks {
				s.Stacks = append(s.Stacks, p)
			}
		}
	}
}

// WithoutStacks returns the networks that would be taken if the host had no stacks.
func (s *Survey) WithoutStacks() Networks {
	return slices.DeleteFunc(slices.Clone(s.Taken), func(p netip.Prefix) bool { return slices.Contains(s.Stacks, p) })
}

// FreeName returns the first name for a tap that no interface has.
func (s *Survey) FreeName() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s%d", tap.Prefix, i)
		if !s.Names[name] {
			s.Names[name] = true
			return name
		}
	}
}

// DefaultRoutes reports for which IP versions the host has a default route.
func DefaultRoutes() (four, six bool, err error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL,
		&netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return false, false, fmt.Errorf("cannot list the host's routes: %w", err)
	}
	for _, r := range routes {
		if !isDefault(r.Dst) || r.Type != unix.RTN_UNICAST {
			continue
		}
		four = four || r.Family == unix.AF_INET
		six = six || r.Family == unix.AF_INET6
	}
	return four, six, nil
}

// Owner returns the interface of the host that has an address in this network, or "".
func Owner(network netip.Prefix) string {
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		addr, ok := netip.AddrFromSlice(a.IP)
		if !ok || !network.Contains(addr.Unmap()) {
			continue
		}
		if device, err := net.InterfaceByIndex(a.LinkIndex); err == nil {
			return device.Name
		}
	}
	return ""
}
