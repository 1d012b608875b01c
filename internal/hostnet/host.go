// SPDX-License-Identifier: GPL-2.0-only

// Package hostnet prepares the host for a stack, and undoes these changes.
//
// A stack behind a tap needs the host as its router: a free private subnet
// between the two, forwarding between the tap and the host's other interfaces,
// and translation of the stack's addresses on the way out. All this lasts as
// long as the stack. Prepare writes each change to a journal before it is made;
// Undo and Sweep undo what the journal names.
// Each part is a package of its own; docs/architecture.md has their imports.
package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/nat"
	"guise/internal/hostnet/passt"
	"guise/internal/hostnet/share"
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/sysctl"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// Host is what was opened and changed on the host for a stack.
type Host struct {
	// Links are the descriptors of the links, in their order. When the last
	// copy of one is closed, its passt ends, or its tap is removed if guise
	// made it.
	Links []*os.File
	// Notes are sentences about what the user may have overlooked.
	Notes []string

	// Keep are descriptors that must stay open as long as the stack lives, in a process that
	// ends with it and not before: with them, the host hides the stack's packets from itself.
	Keep []*os.File

	noted   share.Noted // while the host is being prepared
	ports   share.Ports // of the host, for links that share its addresses; nil: none yet
	asPorts string      // how the user said so

	journal *journal.Journal // nil: nothing was changed
	own     []ownTap         // the user's taps: the first that is free is taken
	asked   plan.Link        // the link for it, as it was before a tap was chosen
}

// Prepare opens the taps of the links. It makes those that guise has to make, and
// changes on the host what they need. id names the changes. ending reports whether
// a stack is about to end, so that its addresses and taps will soon be free. When
// Prepare fails, it has undone everything.
func Prepare(id string, links []*plan.Link, ending func() bool) (h *Host, err error) {
	h = &Host{}
	if len(links) == 1 {
		h.asked = *links[0]
	}
	if h.own, err = choose(links); err != nil {
		return nil, err
	}
	automatic := false
	for _, l := range links {
		automatic = automatic || l.Auto()
	}
	// An interface of the host is not an end of guise's own: the host must not see the packets.
	hiding := slices.ContainsFunc(links, hides)
	if !automatic && !hiding {
		return h, h.openAll(links, ending)
	}
	if automatic && !access.Capability(unix.CAP_NET_ADMIN) {
		return nil, access.Refuse("to make a tap takes CAP_NET_ADMIN, which you do not have; use sudo, or leave --link out to go through " +
			"passt, or --link tap:IFNAME with a tap of your own (sudo guise setup makes one), or --link none for a stack with lo only")
	}
	// Without the lock: a holder needs it to give addresses back.
	if automatic {
		if note := awaitAddresses(links, ending); note != "" {
			h.Notes = append(h.Notes, note)
		}
	}
	if hiding {
		awaitInterfaces(links, ending)
	}
	l, err := journal.Lock()
	if err != nil {
		return nil, err
	}
	defer l.Unlock()
	if h.journal, err = l.New(id); err != nil {
		return nil, err
	}
	// It is empty; this fails if there is no room for a journal.
	if err := l.Save(h.journal); err != nil {
		return nil, fmt.Errorf("%w; nothing was changed", err)
	}
	h.noted = share.Noted{Folder: l, Journal: h.journal}
	defer func() {
		if err != nil {
			h.CloseLinks()
			err = errors.Join(err, undo(l, h.journal))
		}
	}()
	if !automatic {
		return h, h.openAll(links, ending)
	}
	return h, h.prepare(l, links)
}

// prepare makes the taps. They need no journal while no other process has
// them: the kernel removes them when this process ends. All other changes are
// written to the journal, and then made.
func (h *Host) prepare(l *journal.Locked, links []*plan.Link) error {
	s, err := survey.Host()
	if err != nil {
		return err
	}
	taps, err := propose(s, links)
	if err != nil {
		return err
	}
	if err := h.openLinks(links, taps, nil); err != nil {
		return err
	}
	// Sweep has reported a journal that cannot be read. Nothing can be adopted
	// from it.
	others, _ := l.List()
	h.journal.Adopt(others)
	ipv6 := false
	for _, t := range taps {
		device, err := netlink.LinkByName(t.name)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", t.name, err)
		}
		h.journal.Steps = append(h.journal.Steps,
			journal.Step{Kind: journal.Device, Name: t.name, Index: device.Attrs().Index})
		ipv6 = ipv6 || t.ipv6()
	}
	forward, err := nat.Forward(sysctl.Host, h.journal, s.Others, ipv6)
	if err != nil {
		return err
	}
	tables := tables(h.journal.TableName(), taps, forward)
	for _, t := range tables {
		h.journal.Steps = append(h.journal.Steps,
			journal.Step{Kind: journal.Table, Family: t.Version(), Name: t.Name})
	}
	h.journal.Steps = append(h.journal.Steps, forward.Steps...)
	if err := l.Save(h.journal); err != nil {
		return err
	}

	for _, t := range taps {
		if err := t.configure(); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := t.Add(); err != nil {
			return err
		}
	}
	for _, w := range forward.Writes {
		if err := sysctl.Host.Write(w.Key, w.Set); err != nil {
			return err
		}
	}
	return nil
}

// openAll opens links if guise makes none of them, so that nothing has to be undone.
func (h *Host) openAll(links []*plan.Link, ending func() bool) error {
	if slices.ContainsFunc(links, func(l *plan.Link) bool { return l.Kind == plan.Passt }) {
		if err := checkPasst(links); err != nil {
			return err
		}
	}
	return h.openLinks(links, nil, ending)
}

// checkPasst finds addresses for links of which some go through a passt.
func checkPasst(links []*plan.Link) error {
	// First of all: without passt nothing else is needed from the host.
	if _, err := passt.Find(); err != nil {
		return err
	}
	s, err := survey.Host()
	if err == nil {
		_, err = propose(s, links)
	}
	return err
}

// ipv6 reports whether the stack behind the tap has IPv6.
func (t madeTap) ipv6() bool {
	return slices.ContainsFunc(t.hosts, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// configure gives a tap the host's addresses and sysctls. They end with the tap.
func (t madeTap) configure() error {
	device, err := netlink.LinkByName(t.name)
	if err != nil {
		return fmt.Errorf("cannot find %s: %w", t.name, err)
	}
	if t.link.MTU != 0 {
		if err := netlink.LinkSetMTU(device, t.link.MTU); err != nil {
			return fmt.Errorf("cannot give %s an MTU of %d: %w", t.name, t.link.MTU, err)
		}
	}
	v4, v6 := "net/ipv4/conf/"+t.name, "net/ipv6/conf/"+t.name
	if sysctl.Host.Has(v6 + "/disable_ipv6") {
		disable := "1"
		if t.ipv6() {
			disable = "0"
		}
		if err := sysctl.Host.Ensure(v6+"/disable_ipv6", disable); err != nil {
			return err
		}
	}
	for _, host := range t.hosts {
		if err := tap.AddAddress(device, host); err != nil {
			return err
		}
	}
	if _, err := tap.BringUp(t.name); err != nil {
		return err
	}
	if err := sysctl.Host.Ensure(v4+"/forwarding", "1"); err != nil {
		return err
	}
	if t.ipv6() && sysctl.Host.Has(v6+"/force_forwarding") {
		return sysctl.Host.Ensure(v6+"/force_forwarding", "1")
	}
	return nil
}

// tables returns the tables for the firewall, one for each IP version in use.
func tables(name string, taps []madeTap, forward *nat.Forwarding) []nat.Table {
	four := nat.Table{Name: name, Family: nftables.TableFamilyIPv4, Closed: forward.Closed4}
	six := nat.Table{Name: name, Family: nftables.TableFamilyIPv6, Closed: forward.Closed6}
	for _, t := range taps {
		four.Taps, six.Taps = append(four.Taps, t.name), append(six.Taps, t.name)
		for _, a := range t.link.Addresses {
			if a.Addr().Is4() {
				four.Stacks = append(four.Stacks, a)
			} else {
				six.Stacks = append(six.Stacks, a)
			}
		}
	}
	if len(six.Stacks) == 0 {
		return []nat.Table{four}
	}
	return []nat.Table{four, six}
}

// Journal is the path of the journal, or "" when nothing on the host needs
// to be undone.
func (h *Host) Journal() string {
	if h.journal == nil {
		return ""
	}
	return h.journal.Path()
}

// TableName is what the names of the stack's nftables tables begin with; the journal must not be empty.
func (h *Host) TableName() string { return h.journal.TableName() }

// CloseLinks closes this process's descriptors of the links.
func (h *Host) CloseLinks() {
	for _, l := range h.Links {
		l.Close()
	}
	for _, k := range h.Keep {
		k.Close()
	}
	h.Links, h.Keep = nil, nil
}

// HandOver makes the holder the owner of the journal, which undoes everything.
func (h *Host) HandOver(pid int) error {
	if h.journal == nil {
		return nil
	}
	l, err := journal.LockExisting(journal.Directory())
	if errors.Is(err, journal.ErrNone) {
		return nil // the holder has ended already, and undone it
	}
	if err != nil {
		return err
	}
	defer l.Unlock()
	return l.HandOver(h.journal, pid)
}

// Undo undoes everything, when no holder could be started to do so.
func (h *Host) Undo() error {
	h.CloseLinks()
	if h.journal == nil {
		return nil
	}
	return Undo(h.journal.Path())
}
