// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet/guests"
	"guise/internal/plan"
)

// How a program comes to its stack: it joins (preload), or it is a guest, in a network
// namespace of its own whose only way out is the stack (tun).
const (
	modePreload = "preload"
	modeTun     = "tun"
	modeAuto    = "auto"
)

func checkMode(mode string) error {
	switch mode {
	case modePreload, modeTun, modeAuto:
		return nil
	}
	return usage("--mode: %q is none of preload, tun and auto", mode)
}

// checkPreloadable refuses a program that would be on the host's stack without notice.
func checkPreloadable(program string) error {
	if reason := whyNotPreloaded(program); reason != "" {
		return failure{statusNotExecutable, fmt.Errorf("%s, so it cannot be preloaded; guise run --mode tun puts it on a stack of its own", reason)}
	}
	return nil
}

// choose decides on the mode for a program, and says so when it is not the usual one.
func (f *runFlags) choose(tun *bool, program string) error {
	if *tun {
		return nil
	}
	if f.mode == modePreload {
		return checkPreloadable(program)
	}
	reason := whyNotPreloaded(program)
	if reason == "" {
		return nil
	}
	complain(fmt.Errorf("%s; so it runs in a network namespace of its own, whose only way out is the stack (--mode tun)", reason))
	*tun = true
	return nil
}

// way is what is to be executed so that a program runs on the stack.
type way struct {
	path  string
	argv  []string
	env   []string
	files []*os.File // that it inherits
}

func (w *way) close() { closeAll(w.files) }

// way is how this program gets to the stack.
func (s *settings) way(program string, command []string, preload string, ticket int) (*way, error) {
	if s.tun {
		return enter(s.namespace, program, command, s.resolv, s.hosts)
	}
	env, err := holder.Environment(os.Environ(), preload, ticket, s.MPTCP)
	path, argv := asMember(program, command)
	return &way{path: path, argv: argv, env: append(env, environment(s.resolv, s.hosts)...)}, err
}

// enter goes through guise-holder, which enters the namespaces and becomes the program.
func enter(namespace *guests.Namespace, program string, command []string, resolv, hosts string) (w *way, err error) {
	w = &way{env: holder.WithoutStack(os.Environ())}
	if w.path, err = holder.Find(holder.Program); err != nil {
		return nil, err
	}
	if hosts != "" {
		// Without a file of the host's, these lines are all there is.
		before, _ := os.ReadFile("/etc/hosts")
		hosts = string(before) + "\n" + hosts
	}
	w.files = []*os.File{namespace.Net, namespace.User, nil, nil}
	for i, text := range []string{resolv, hosts} {
		if text == "" {
			continue
		}
		if w.files[2+i], err = holder.MemoryFile("guise-names", text); err != nil {
			return nil, err
		}
	}
	w.argv = []string{holder.Program, "--enter"}
	for _, file := range w.files {
		word := "-"
		if file != nil {
			word = strconv.Itoa(int(file.Fd()))
			if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil {
				return nil, fmt.Errorf("cannot hand %s on: %w", file.Name(), err)
			}
		}
		w.argv = append(w.argv, word)
	}
	w.argv = append(append(w.argv, program), command...)
	return w, nil
}

// visit becomes a guest of a stack that is there already, and has a place for guests.
func visit(id, program string, argv []string, command []string) error {
	a, err := admit(id, command...)
	if err != nil {
		return err
	}
	c, err := a.stack.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	alive, err := c.Alive()
	if err != nil {
		return err
	}
	// A guest gets no ticket: this one is closed when the program is executed.
	if _, _, err = holder.MoveTicket(alive); err != nil {
		return err
	}
	net, err := c.Guests()
	var refused holder.RefusedError
	if errors.As(err, &refused) {
		return failure{statusNotExecutable, fmt.Errorf("%w; guests = true in its config gives it one, or guise run without --stack", err)}
	}
	if err != nil {
		return err
	}
	namespace, err := guests.Enter(net)
	if err != nil {
		return err
	}
	w, err := enter(namespace, program, argv, a.told(resolvVariable), a.told(hostsVariable))
	if err != nil {
		return err
	}
	return execute(w.path, w.argv, w.env)
}

// proposeGuests chooses what the namespace of a guest has, when the links have theirs.
func (s *settings) proposeGuests() error {
	links := s.Links
	if len(s.uplinks) > 0 { // which have any ways, as these come and go
		links = []*plan.Link{{Gateways: []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}}}
	}
	g, err := guests.Propose(links)
	if err != nil {
		return err
	}
	g.TakeSysctls(s.Sysctls)
	if s.Follow != nil {
		g.TakePorts(s.Follow.Sysctls)
	}
	s.Guests = g
	return nil
}

// openGuests makes the namespace of a guest, and returns what the holder needs of it.
func (s *settings) openGuests() ([]*os.File, error) {
	if !s.tun {
		return nil, nil
	}
	if err := s.proposeGuests(); err != nil {
		return nil, err
	}
	n, err := guests.Open(s.Guests)
	if err != nil {
		return nil, err
	}
	s.namespace = n
	return []*os.File{n.Tun, n.Net}, nil
}
