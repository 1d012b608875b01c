// SPDX-License-Identifier: GPL-2.0-only

// Package hostnet prepares the host for a stack, and undoes what it did.
//
// A stack behind a tap needs the host to be its router: a free private subnet
// between the two, forwarding between the tap and the host's other interfaces,
// and translation of the stack's addresses on the way out. All of it lives as
// long as the stack: Prepare makes it and notes it in a journal first, Undo and
// Sweep take it back.
// Each part is a package of its own; docs/architecture.md has who imports whom.
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
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/sysctl"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// Host is what a stack has of the host.
type Host struct {
	// Links are the descriptors of the links, in their order. Whoever closes
	// the last copy of one makes its tap vanish, if guise made it, and its
	// passt end.
	Links []*os.File
	// Notes are sentences on what the user may have overlooked.
	Notes []string

	journal *journal.Journal // nil: nothing was changed
	own     []ownTap         // of which the first that is free is to be taken
	asked   plan.Link        // for which: as it was before one of them was chosen
}

// Prepare opens the taps of the links, and makes those that guise is to make,
// with all that the host needs for them. id names the changes. ending says whether
// there is a stack that gives back soon what it has. When it fails, everything was
// undone.
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
	if !automatic {
		return h, h.openAll(links, ending)
	}
	if !access.Capability(unix.CAP_NET_ADMIN) {
		return nil, access.Refuse("to make a tap takes CAP_NET_ADMIN, which you do not have; use sudo, or leave --link out to go through " +
			"passt, or --link tap:IFNAME with a tap of your own (sudo guise setup makes one), or --link none for a stack with lo only")
	}
	// Without the lock, which a holder takes to give them back.
	if note := awaitAddresses(links, ending); note != "" {
		h.Notes = append(h.Notes, note)
	}
	l, err := journal.Lock()
	if err != nil {
		return nil, err
	}
	defer l.Unlock()
	if h.journal, err = l.New(id); err != nil {
		return nil, err
	}
	// Empty, but it shows that there is room for one.
	if err := l.Save(h.journal); err != nil {
		return nil, fmt.Errorf("%w; nothing was changed", err)
	}
	defer func() {
		if err != nil {
			h.CloseLinks()
			err = errors.Join(err, undo(l, h.journal))
		}
	}()
	return h, h.prepare(l, links)
}

// prepare makes the taps, which need no journal as long as no other process
// has them: they vanish with this one. Then everything else is noted, and done.
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
	// A journal that cannot be read has been complained of (Sweep), and holds
	// nothing that this one could adopt.
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
	tables := tables("guise_"+h.journal.ID(), taps, forward)
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

// openAll opens links of which guise makes none, so that nothing is to be undone.
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
	// Before anything is asked of the host that it would not be needed for.
	if _, err := passt.Find(); err != nil {
		return err
	}
	s, err := survey.Host()
	if err == nil {
		_, err = propose(s, links)
	}
	return err
}

// ipv6 says whether the stack behind the tap has IPv6.
func (t madeTap) ipv6() bool {
	return slices.ContainsFunc(t.hosts, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// configure gives a tap the host's addresses. All of it goes with the tap.
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

// tables are the firewall's, one for each IP version in use.
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

// CloseLinks closes this process's descriptors of the links.
func (h *Host) CloseLinks() {
	for _, l := range h.Links {
		l.Close()
	}
	h.Links = nil
}

// HandOver makes the holder the one that undoes everything.
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

// Undo takes everything back, when no holder could be started to do it.
func (h *Host) Undo() error {
	h.CloseLinks()
	if h.journal == nil {
		return nil
	}
	return Undo(h.journal.Path())
}
