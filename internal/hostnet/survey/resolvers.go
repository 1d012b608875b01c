// SPDX-License-Identifier: GPL-2.0-only

package survey

import (
	"bufio"
	"net/netip"
	"os"
	"strings"
)

// ResolvConf is where the host names its name servers.
const ResolvConf = "/etc/resolv.conf"

// Resolvers returns the name servers in the host's resolv.conf, and its other lines.
// If it names no server, it is 127.0.0.1, as for the C library.
func Resolvers() (servers []netip.Addr, others []string) {
	if file, err := os.Open(ResolvConf); err == nil {
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
