// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Guests are programs that are no members of the stack: they are in a network namespace
// of their own, whose only way out is a tun of which the stack has the other end.
type Guests struct {
	MTU       int
	Stack     []netip.Prefix // the stack's addresses on their link; at most one a family
	Addresses []netip.Prefix // theirs
	Routes    []netip.Prefix // of theirs, over the link
	Sysctls   []Sysctl       // of theirs
}

// GuestsLink is the name of the guests' link in the stack; in their namespace it is eth0.
const GuestsLink = "guest0"

// relayNetworks are those of the addresses that stand for the host's (publish.go), and from
// which published ports are asked (relay/datagram.h).
var relayNetworks = []netip.Prefix{
	netip.MustParsePrefix("169.254.77.0/24"),
	netip.MustParsePrefix("fd67:7569:7365::/64"),
}

// FindWays gives guests the ways that a stack with these links has.
func (g *Guests) FindWays(links []*Link) {
	g.MTU = 1500
	four := slices.ContainsFunc(g.Addresses, func(p netip.Prefix) bool { return p.Addr().Is4() })
	six := slices.ContainsFunc(g.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() })
	for _, l := range links {
		if l.MTU != 0 && l.MTU < g.MTU {
			g.MTU = l.MTU
		}
		for _, a := range l.Addresses {
			g.Routes = append(g.Routes, a.Masked())
		}
		for _, gateway := range l.Gateways {
			anywhere := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			if gateway.Is4() {
				anywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			}
			g.Routes = append(g.Routes, anywhere)
		}
	}
	g.Routes = append(g.Routes, relayNetworks...)
	g.Routes = slices.DeleteFunc(g.Routes, func(p netip.Prefix) bool { return p.Addr().Is4() && !four || p.Addr().Is6() && !six })
	slices.SortFunc(g.Routes, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	g.Routes = slices.Compact(g.Routes)
}

// TakeSysctls gives guests those of the stack's settings that decide what the near end of
// a connection does for the far one: how long connect() tries.
func (g *Guests) TakeSysctls(all []Sysctl) {
	for _, s := range all {
		if s.names("tcp_syn_retries") {
			g.Sysctls = append(g.Sysctls, s)
		}
	}
}

// addForwarding writes what must be said before there is a link: that the stack forwards
// what is no TCP, and still hears its routers.
func (g *Guests) addForwarding(p *Plan) {
	p.add("", "sysctl net.ipv4.ip_forward 1")
	p.add("", "sysctl net.ipv6.conf.default.accept_ra 2")
	p.add("", "sysctl net.ipv6.conf.all.forwarding 1")
}

// addTo writes the link of the guests; fd is its tun, as the holder sees it, and fd + 1 their namespace.
func (g *Guests) addTo(p *Plan, fd int, mptcp bool) {
	p.add("", "link %s tun fd=%d mtu=%d", GuestsLink, fd, g.MTU)
	p.add("", "sysctl net.ipv6.conf.%s.addr_gen_mode 1", GuestsLink)
	for _, a := range g.Stack {
		p.add("", "address %s %s", GuestsLink, a)
	}
	p.add("", "up %s", GuestsLink)
	text := fmt.Sprintf("guests %s fd=%d", GuestsLink, fd+1)
	if mptcp {
		text += " mptcp"
	}
	for _, a := range g.Addresses {
		text += " " + a.Addr().String()
	}
	p.add("--mode tun", "%s", text)
}
