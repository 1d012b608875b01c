// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"guise/internal/plan"
)

const resolvConf = "/etc/resolv.conf"

// Resolvers is what the host's resolv.conf says: its name servers, and its other
// lines. Without a server there, the one of the C library: 127.0.0.1.
func Resolvers() (servers []netip.Addr, others []string) {
	if file, err := os.Open(resolvConf); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if len(words) == 0 || strings.ContainsRune("#;", rune(words[0][0])) {
				continue
			}
			if words[0] != "nameserver" {
				others = append(others, strings.Join(words, " "))
				continue
			}
			if len(words) < 2 {
				continue
			}
			if addr, err := netip.ParseAddr(words[1]); err == nil {
				servers = append(servers, addr)
			}
		}
	}
	if len(servers) == 0 {
		servers = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	return servers, others
}

// HostsAlone says whether only the host itself can reach an address: it is of its
// loopback, or of one of its links.
func HostsAlone(a netip.Addr) bool { return a.IsLoopback() || a.Zone() != "" }

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
		if HostsAlone(s) {
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
