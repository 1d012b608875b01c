// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"guise/internal/holder"
	"guise/internal/hostnet/survey"
	"guise/internal/image"
	"guise/internal/plan"
)

// print writes what guise run would use, and where each value is from: a flag,
// a default, or chosen by guise (automatic), and then the plan.
func (f *runFlags) print(cmd *cobra.Command, s *settings) error {
	var given []int // addresses that the user gave each link
	for _, l := range s.Links {
		given = append(given, len(l.Addresses))
	}
	if err := s.propose(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	show := func(name, value, origin string) {
		fmt.Fprintf(out, "%-10s %-40s # %s\n", name, value, origin)
	}
	flag := func(name string) string {
		if cmd.Flags().Changed(name) {
			return "--" + name
		}
		return "default"
	}
	name := "the program's"
	if f.name != "" {
		name = "--name"
	}
	show("name", s.Name, name)
	show("memory", f.memory, flag("memory"))
	mode := f.mode
	if f.mode == modeAuto {
		mode = "auto: preload, or tun where the program cannot be preloaded"
	}
	show("mode", mode, flag("mode"))
	show("user", cmp.Or(s.User, "who starts it"), flag("user"))
	show("served", cmp.Or(map[bool]string{true: "all programs"}[s.Served], "those with other rights than the user's"), flag("served"))
	show("privileges", cmp.Or(s.Privileges, "all"), flag("privileges"))
	profiled := func(name string) string {
		if f.profile != "" && !cmd.Flags().Changed(name) {
			return "--profile " + f.profile
		}
		return flag(name)
	}
	cc := "the kernel's default"
	if kernel, err := image.Choose(f.extensions); err == nil {
		show("kernel", kernel.Name(), flag("extension"))
		cc = cmp.Or(kernel.Default, cc)
	}
	show("cc", cmp.Or(s.CC, cc), profiled("cc"))
	show("mptcp", fmt.Sprint(s.MPTCP), profiled("mptcp"))
	for i, sysctl := range s.Sysctls {
		origin := "--sysctl"
		if i < len(s.Sysctls)-len(f.sysctls) {
			origin = "--profile " + f.profile
		}
		show("sysctl", sysctl.String(), origin)
	}
	if len(s.Links) == 0 && len(s.uplinks) == 0 {
		show("link", "none", "--link")
	}
	for _, u := range s.uplinks {
		show("uplink", strings.TrimPrefix(u.Flag, "--uplink ")+" ("+u.Way+")", "--uplink")
	}
	for i, l := range s.Links {
		show("link", l.Inside+" "+strings.TrimPrefix(l.Flag, "--link "), flag("link"))
		for k, a := range l.Addresses {
			origin := "--ip"
			if k >= given[i] {
				origin = "automatic: a network that the host does not use"
			}
			show("ip", l.Inside+" "+a.String(), origin)
		}
		for _, g := range l.Gateways {
			origin := flag("gateway")
			if origin == "default" {
				origin = "automatic: the host"
			}
			show("gateway", l.Inside+" "+g.String(), origin)
		}
	}
	show("netem", cmp.Or(s.Netem, "none"), flag("netem"))
	f.printNames(s, show)
	fmt.Fprintf(out, "\n# The plan that guise-holder would get:\n%s", s.Plan(holder.FirstLinkFD).Text())
	return nil
}

// printNames shows how names are found, and the ways between the program and the host.
func (f *runFlags) printNames(s *settings, show func(name, value, origin string)) {
	s.findNames()
	for _, d := range s.dns {
		show("dns", d.String(), "--dns")
	}
	if len(s.dns) == 0 {
		servers, _ := survey.Resolvers()
		for _, d := range servers {
			show("dns", d.String(), "default: the host's /etc/resolv.conf")
		}
	}
	for _, h := range s.Hosts {
		show("host", h.Name+" "+h.Address.String(), "automatic")
	}
	value, origin := "off", "default"
	if s.localhost {
		value = "on: " + plan.HostName
	}
	if f.localhost != "" {
		origin = "--localhost"
	}
	show("localhost", value, origin)
	for _, p := range s.publications {
		show("publish", fmt.Sprintf("%s is %d/%s of the stack", p.Host, p.Port, p.Protocol()), "--publish")
	}
}
