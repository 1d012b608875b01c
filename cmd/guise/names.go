// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// names are the ways between the program and the host: name servers, the
// host's localhost, published ports.
type names struct {
	dns       []netip.Addr // --dns
	localhost bool
	relayed   bool // name servers that only the host can reach are relayed

	publications []*plan.Publication
}

// readNames checks name servers, localhost and published ports. A stack without
// links is one without ways to the host, unless they are asked for.
func (w *wishes) readNames(s *settings) error {
	for i, text := range w.DNS {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return w.wrong(fmt.Sprintf("dns.%d", i), fmt.Errorf("%q is no address; expected one as in 192.0.2.53 or 2001:db8::53", text))
		}
		s.dns = append(s.dns, addr)
	}
	s.localhost = len(s.Links) > 0
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

// findNames finds the program's name servers, and the relays that they need: resolv is the
// text of its resolv.conf, "" for the host's own; hosts are lines for its /etc/hosts.
func (s *settings) findNames() (resolv, hosts string) {
	servers, others := survey.Resolvers()
	seen, relays := servers, []plan.Relay(nil)
	switch {
	case len(s.dns) > 0:
		seen = s.dns
	case s.relayed:
		seen, relays = hostnet.RelayResolvers(servers)
	}
	s.Relays = append(s.Relays, relays...)
	if len(s.dns) > 0 || len(relays) > 0 {
		resolv = hostnet.ResolvConf(seen, others)
	}
	if s.localhost {
		hosts = fmt.Sprintf("%s %s\n%s %s\n", plan.HostAddress, plan.HostName, plan.HostAddress6, plan.HostName)
	}
	return resolv, hosts
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
