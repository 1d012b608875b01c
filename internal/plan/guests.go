// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Guests describes the network namespace of a stack's guests, which are not members: its
// only way out is a tun, whose other end is a link of the stack.
type Guests struct {
	MTU       int
	Stack     []netip.Prefix // the stack's addresses on their link; at most one a family
	Addresses []netip.Prefix // of the namespace
	Routes    []netip.Prefix // of the namespace, over the tun
	Sysctls   []Sysctl       // of the namespace
}

// GuestsLink is the name of the guests' link in the stack; in their namespace it is eth0.
const GuestsLink = "guest0"

// relayNetworks have the addresses inside the stack that stand for others (publish.go), and
// those of the clients of published ports, as programs see them.
var relayNetworks = []netip.Prefix{
	netip.MustParsePrefix("169.254.77.0/24"),
	netip.MustParsePrefix("fd67:7569:7365::/64"),
}

// IsInside reports whether a network has such addresses: no network outside may have them.
func IsInside(p netip.Prefix) bool { return slices.ContainsFunc(relayNetworks, p.Overlaps) }

// FindWays gives guests routes to all that a stack with these links can reach.
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

// TakeSysctls gives guests the stack's settings for how long connect() tries, which have to
// hold at both ends of a connection.
func (g *Guests) TakeSysctls(all []Sysctl) {
	for _, s := range all {
		if s.names("tcp_syn_retries") {
			g.Sysctls = append(g.Sysctls, s)
		}
	}
}

// TakePorts gives guests the stack's range of ports: what they send over UDP keeps its port.
func (g *Guests) TakePorts(all []Sysctl) {
	for _, s := range all {
		if s.names("ip_local_port_range") || s.names("ip_local_reserved_ports") {
			g.Sysctls = append(g.Sysctls, s)
		}
	}
}

// addForwarding writes what must be set before there is a link: the stack forwards whatever
// is not TCP, and still accepts router advertisements.
func (g *Guests) addForwarding(p *Plan) {
	p.add("", "sysctl net.ipv4.ip_forward 1")
	p.add("", "sysctl net.ipv6.conf.default.accept_ra 2")
	p.add("", "sysctl net.ipv6.conf.all.forwarding 1")
}

// addTo writes the guests' link. In the holder fd is its tun, and fd + 1 their namespace.
func (g *Guests) addTo(p *Plan, fd int, mptcp bool) (descriptors int) {
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
	return 2
}
