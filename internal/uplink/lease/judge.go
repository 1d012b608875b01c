// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"net"
	"net/netip"
	"strings"
)

// What servers and routers say is judged here. They are strangers: what makes no sense is left out.

// How many of each are taken. More is no network's need.
const (
	mostAddresses = 8
	mostPrefixes  = 16
	mostRouters   = 8
	mostServers   = 8
	mostDomains   = 8
	mostRoutes    = 32
)

const (
	leastMTU4 = 576
	leastMTU6 = 1280
)

// host reports whether a single machine can have the address, and not only inside itself.
func host(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.Is4In6() || a.Zone() != "":
		return false
	case a.Is4():
		first := a.As4()[0]
		return first != 0 && first != 127 && first < 224
	}
	return true
}

// global reports whether it can be the address of a stack that a server gives.
func global(a netip.Addr) bool { return host(a) && !a.IsLinkLocalUnicast() }

// edge reports whether an address is that of the network itself or for all in it.
func edge(p netip.Prefix) bool {
	if !p.Addr().Is4() || p.Bits() > 30 {
		return false
	}
	return p.Addr() == p.Masked().Addr() || p.Addr() == last(p)
}

func last(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		a[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(a)
}

// addresses takes those that judge takes, each once.
func addresses(all []net.IP, most int, judge func(netip.Addr) bool) []netip.Addr {
	var taken []netip.Addr
	for _, one := range all {
		a, _ := netip.AddrFromSlice(one)
		if len(one) == net.IPv4len || len(one) == net.IPv6len && one.To4() != nil {
			a = a.Unmap()
		}
		if len(taken) < most && judge(a) {
			taken = append(taken, a)
		}
	}
	return unique(taken)
}

// domains takes those that are names of hosts. They go to resolv.conf, where a blank or a new line
// would begin something else.
func domains(all []string) []string {
	var taken []string
	for _, one := range all {
		if one = strings.TrimSuffix(one, "."); len(taken) < mostDomains && isDomain(one) {
			taken = append(taken, strings.ToLower(one))
		}
	}
	return unique(taken)
}

func isDomain(name string) bool {
	if len(name) == 0 || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !(c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
				return false
			}
		}
	}
	return true
}

// fits returns an MTU that the device can have, or 0. A network of jumbo frames may say more than
// the device has, and then that of the device holds.
func fits(mtu, least, device int) int {
	if mtu < least || mtu >= device {
		return 0
	}
	return mtu
}
