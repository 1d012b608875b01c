// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// names are what relays carry between the stack and the host: questions to name servers,
// connections to the host's localhost, and those to published ports.
type names struct {
	dns       []netip.Addr // --dns
	localhost bool
	relayed   bool // what is asked of name servers goes through the holder

	publications []*plan.Publication

	// What a program is told of them (findNames): the text of its resolv.conf, "" for the
	// host's own; lines for its /etc/hosts.
	resolv, hosts string
}

// readNames checks name servers, localhost and published ports. Nothing is relayed, unless it is
// asked for, for a stack without links, and for one that has a link which guise did not make:
// what is asked of the host would pass by the network that the user has chosen.
func (w *wishes) readNames(s *settings) error {
	for i, text := range w.DNS {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return w.wrong(fmt.Sprintf("dns.%d", i), fmt.Errorf("%q is no address; expected one as in 192.0.2.53 or 2001:db8::53", text))
		}
		s.dns = append(s.dns, addr)
	}
	foreign := func(l *plan.Link) bool { return !hostnet.Ours(l) }
	s.localhost = len(s.Links)+len(s.uplinks) > 0 && !slices.ContainsFunc(s.Links, foreign)
	s.relayed = s.localhost
	if w.Localhost != nil {
		s.localhost = *w.Localhost
		s.relayed = s.relayed || s.localhost
	}
	if s.localhost {
		s.Relays = append(s.Relays, plan.LocalhostRelays()...)
	}
	for i, text := range w.Publish {
		key := fmt.Sprintf("publish.%d", i)
		p, err := plan.ParsePublication(text)
		if err != nil {
			return w.wrong(key, err)
		}
		p.Flag = w.origin(key, text)
		s.publications = append(s.publications, p)
		s.Publications = append(s.Publications, p)
	}
	return nil
}

// mostServers is how many name servers the C library asks.
const mostServers = 3

// findNames finds what the programs need to find names, when the links have their addresses:
// their name servers, and what the holder itself knows.
//
// All that they ask goes through the holder (holder/relay/resolvers.c), unless the stack has
// no link: then only the servers that --dns named can be asked.
func (s *settings) findNames() {
	host, others := survey.Resolvers()
	seen := slices.Clone(s.dns[:min(len(s.dns), mostServers)])
	switch {
	case s.relayed && len(seen) > 0:
		for i, server := range seen {
			if server.Zone() == "" { // else it is of one of the stack's links
				seen[i] = s.AddResolver(server)
			}
		}
	case s.relayed:
		// With addresses of their own the uplinks have name servers that are not known yet.
		count := min(len(host), mostServers)
		if len(s.uplinks) > 0 && !slices.ContainsFunc(s.uplinks, func(u *plan.Uplink) bool { return u.Way != plan.Own }) {
			count = mostServers
		}
		for range count {
			seen = append(seen, s.AddResolver(netip.Addr{}))
		}
	}
	if len(seen) > 0 {
		s.resolv = plan.ResolvConf(seen, others)
	} else if len(s.Links) > 0 && !slices.ContainsFunc(host, isReachable) {
		complain(fmt.Errorf("the host's name servers (%s) answer the host only, and this stack has a link that guise did not make; "+
			"--dns ADDR names a server that the stack reaches, --localhost on has it ask the host's", addresses(host)))
	}
	s.AddHosts(s.localhost)
	s.hosts = s.HostsFile()
}

// isReachable reports whether others than the host may reach a name server
// (holder/relay/resolvers.c has the same rule).
func isReachable(server netip.Addr) bool {
	return !server.IsLoopback() && !server.IsLinkLocalUnicast()
}

func addresses(servers []netip.Addr) string {
	var words []string
	for _, s := range servers {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// What tells a member of its names.
const (
	resolvVariable = "GUISE_RESOLV_CONF"
	hostsVariable  = "GUISE_HOSTS"
)

// environment tells a member of its names.
func environment(resolv, hosts string) (env []string) {
	if resolv != "" {
		env = append(env, resolvVariable+"="+resolv)
	}
	if hosts != "" {
		env = append(env, hostsVariable+"="+hosts)
	}
	return env
}

// tell has the holder keep what a program on the stack has to be told.
func (s *settings) tell(env []string) {
	if s.MPTCP {
		env = append(env, "GUISE_MPTCP=1")
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		s.Control.Told[toldEnvironment+name] = holder.Escape(value)
	}
}

// bindPorts takes the host's ports for the stack, and says which ones the
// kernel has chosen.
func (s *settings) bindPorts() (files []*os.File, err error) {
	for _, p := range s.publications {
		chosen := p.Host.Port() == 0
		file, err := hostnet.Bind(p)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, file)
		if chosen {
			complain(fmt.Errorf("port %d/%s of the stack is %s of the host", p.Port, p.Protocol(), p.Host))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
