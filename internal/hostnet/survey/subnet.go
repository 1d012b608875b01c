// SPDX-License-Identifier: GPL-2.0-only

package survey

import (
	"fmt"
	"net/netip"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// The subnets between the host and its stacks are taken from these, in order.
// Home routers, VPNs and container engines do not use them by default.
// Within each, a stack gets a /30: .1 is the host, .2 the stack.
var pools4 = []netip.Prefix{
	netip.MustParsePrefix("10.213.0.0/16"),
	netip.MustParsePrefix("172.29.128.0/17"),
	netip.MustParsePrefix("192.168.213.0/24"),
}

// pool6 is a unique local prefix, in which the 40 bits that should be random are the
// letters "guise". A stack gets a /64 of it: ::1 is the host, ::2 the stack.
var pool6 = netip.MustParsePrefix("fd67:7569:7365::/48")

// A route as wide as these or wider leads to everything (a VPN's 0.0.0.0/1, the
// Internet's 2000::/3). It is not a network that a subnet must not overlap.
const (
	anywhere4 = 7
	anywhere6 = 15
)

// Networks are networks that the host uses.
type Networks []netip.Prefix

// By returns the network of the host that overlaps p, if there is one.
func (t Networks) By(p netip.Prefix) (netip.Prefix, bool) {
	for _, u := range t {
		wide := anywhere6
		if u.Addr().Is4() {
			wide = anywhere4
		}
		if u.Bits() > wide && u.Overlaps(p) {
			return u, true
		}
	}
	return netip.Prefix{}, false
}

// Pair is a subnet with an address for each side, the prefix length included.
type Pair struct {
	Host, Stack netip.Prefix
}

func newPair(subnet netip.Prefix) Pair {
	first := subnet.Addr().Next()
	return Pair{netip.PrefixFrom(first, subnet.Bits()), netip.PrefixFrom(first.Next(), subnet.Bits())}
}

// Join gives the link the stack's address of a subnet. The subnet is taken from then on.
func (s *Survey) Join(l *plan.Link, p Pair) {
	l.Addresses = append(l.Addresses, p.Stack)
	l.Gateways = append(l.Gateways, p.Host.Addr())
	s.Taken = append(s.Taken, p.Host.Masked())
}

// Free4 finds a private subnet that the host does not use.
func (t Networks) Free4() (Pair, error) {
	for _, pool := range pools4 {
		for a := pool.Addr(); pool.Contains(a); a = advance(a, 4) {
			if subnet := netip.PrefixFrom(a, 30); !t.has(subnet) {
				return newPair(subnet), nil
			}
		}
	}
	return Pair{}, access.Refuse("this host has routes to all of %v, and guise finds no subnet for the stack; name one: --ip ADDR/LEN", pools4)
}

// Free6 finds a unique local subnet that the host does not use.
func (t Networks) Free6() (Pair, error) {
	a := pool6.Addr().As16()
	for n := 1; n < 1<<16; n++ {
		a[6], a[7] = byte(n>>8), byte(n)
		if subnet := netip.PrefixFrom(netip.AddrFrom16(a), 64); !t.has(subnet) {
			return newPair(subnet), nil
		}
	}
	return Pair{}, fmt.Errorf("this host has routes to all of %v", pool6)
}

func (t Networks) has(p netip.Prefix) bool {
	_, ok := t.By(p)
	return ok
}

func advance(a netip.Addr, n int) netip.Addr {
	for ; n > 0; n-- {
		a = a.Next()
	}
	return a
}

// Opposite returns the host's address in the network of the stack's address: the
// gateway if the user named one there, otherwise the first that is free.
func Opposite(stack netip.Prefix, gateways []netip.Addr) (netip.Prefix, error) {
	for _, g := range gateways {
		if stack.Contains(g) {
			return netip.PrefixFrom(g, stack.Bits()), nil
		}
	}
	subnet := stack.Masked()
	a := subnet.Addr()
	// A host cannot have the first and the last address of an IPv4 network, nor the
	// first of an IPv6 one. A network of two addresses has one for each host.
	if subnet.Bits() < a.BitLen()-1 {
		a = a.Next()
	}
	if a == stack.Addr() {
		a = a.Next()
	}
	if !subnet.Contains(a) || a.Is4() && subnet.Bits() < 31 && !subnet.Contains(a.Next()) {
		return netip.Prefix{}, access.Refuse("%s leaves no address for the host beside the stack; expected a shorter prefix, as in %s/%d",
			stack, stack.Addr(), stack.Addr().BitLen()-2)
	}
	return netip.PrefixFrom(a, stack.Bits()), nil
}
