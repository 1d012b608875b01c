// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// ResolvConf is the text of a resolv.conf.
func ResolvConf(servers []netip.Addr, others []string) string {
	text := strings.Builder{}
	text.WriteString("# written by guise run\n")
	for _, s := range servers {
		text.WriteString("nameserver " + s.String() + "\n")
	}
	for _, line := range others {
		text.WriteString(line + "\n")
	}
	return text.String()
}

// RelayResolvers gives those servers that only the host can reach addresses in the
// stack that stand for them. Without such a server there are no relays.
func RelayResolvers(servers []netip.Addr) (seen []netip.Addr, relays []plan.Relay) {
	for _, s := range servers {
		if survey.HostsAlone(s) {
			if s.Zone() != "" {
				s = s.WithZone(strconv.Itoa(int(zone(s))))
			}
			addr, relay := plan.ResolverRelay(len(relays), s)
			relays = append(relays, relay)
			s = addr
		}
		seen = append(seen, s)
		if len(seen) == 3 { // as many as the C library asks
			break
		}
	}
	return seen, relays
}

// zone is the number of the interface that an address names.
func zone(a netip.Addr) uint32 {
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	if link, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(link.Index)
	}
	return 0
}
