// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"strings"
)

// Resolver is a name server of the stack's programs: an address inside the stack. The holder
// passes on the questions that are sent to it.
type Resolver struct {
	Address netip.Addr
	Server  netip.Addr // the server that is asked, over the stack; invalid: one of the host's
}

// Host is a name that the holder knows, and no name server.
type Host struct {
	Name    string
	Address netip.Addr
}

// The names that a stack's programs know.
const (
	HostName    = "host.guise.internal"    // the host's localhost
	GatewayName = "gateway.guise.internal" // the stack's default gateway
)

// AddResolver gives the stack one more name server (Resolver), and returns its address there.
func (r *Run) AddResolver(server netip.Addr) netip.Addr {
	address := netip.MustParseAddr(fmt.Sprintf(resolverAddress, firstResolver+len(r.Resolvers)))
	r.Resolvers = append(r.Resolvers, Resolver{address, server})
	return address
}

// AddHosts adds the names: of the host's localhost if it is relayed, and of the default gateways
// when the links have theirs.
func (r *Run) AddHosts(localhost bool) {
	if localhost {
		for _, address := range []string{HostAddress, HostAddress6} {
			r.Hosts = append(r.Hosts, Host{HostName, netip.MustParseAddr(address)})
		}
	}
	given := map[bool]bool{} // by Is4
	for _, l := range r.Links {
		for _, g := range l.Gateways {
			if given[g.Is4()] {
				continue
			}
			given[g.Is4()] = true
			// A name cannot tell the link of a link-local address.
			if !g.IsLinkLocalUnicast() {
				r.Hosts = append(r.Hosts, Host{GatewayName, g})
			}
		}
	}
}

func (r *Run) addNames(p *Plan) {
	for _, resolver := range r.Resolvers {
		text := "resolver " + resolver.Address.String()
		if resolver.Server.IsValid() {
			text += " " + resolver.Server.String()
		}
		p.add("", "%s", text)
	}
	if len(r.Resolvers) == 0 {
		return
	}
	for _, h := range r.Hosts {
		p.add("", "host %s %s", h.Name, h.Address)
	}
}

// HostsFile returns the names as lines of /etc/hosts.
func (r *Run) HostsFile() string {
	text := strings.Builder{}
	for _, h := range r.Hosts {
		fmt.Fprintf(&text, "%s %s\n", h.Address, h.Name)
	}
	return text.String()
}

// ResolvConf returns the text of the programs' resolv.conf: these servers, and the other lines
// of the host's file.
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
