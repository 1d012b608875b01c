// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netns"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
	"guise/internal/suggest"
)

// Check looks at the host before anything is made for a stack with these uplinks. One that can never be used
// is an error. One that is absent, down or without an address is none as long as another can be used: it is
// taken when it comes. If none can be used, Check waits for a short time, or for a signal, which it returns.
func Check(uplinks []*plan.Uplink, stop <-chan os.Signal) (os.Signal, error) {
	h, err := newHost(netns.None())
	if err != nil {
		return nil, err
	}
	defer h.close()
	return check(h, uplinks, stop, time.After(shortWait))
}

func check(h *host, uplinks []*plan.Uplink, stop <-chan os.Signal, over <-chan time.Time) (os.Signal, error) {
	events := make(chan struct{}, 1)
	go func() {
		for {
			if _, err := h.await(nil); err != nil {
				return
			}
			poke(events)
		}
	}()
	f := &follower{}
	for i, u := range uplinks {
		f.paths = append(f.paths, newPath(u, i))
	}
	for {
		devices, err := h.look(f.names())
		if err != nil {
			return nil, err
		}
		if fit, err := f.judge(devices); fit || err != nil {
			return nil, err
		}
		select {
		case <-events:
		case caught := <-stop:
			return caught, nil
		case <-over:
			return nil, access.Refuse("no uplink can be used: %s", list(f.explain(h.names())))
		}
	}
}

// judge reports whether one of the uplinks can be used.
func (f *follower) judge(devices map[string]*device) (fit bool, err error) {
	owners := map[netip.Addr]string{}
	for _, p := range f.paths {
		d := devices[p.Name]
		p.see(d, map[netip.Addr]string{})
		if d == nil {
			continue
		}
		switch {
		case d.loopback:
			return false, access.Refuse("%s: %s leads to no network; expected an interface with a way out", p.Origin(), p.Name)
		case d.master != 0:
			return false, access.Refuse("%s: %s is a port of a bridge or bond, which has its addresses; expected that one as the uplink",
				p.Origin(), p.Name)
		}
		for _, a := range p.Addresses {
			if slices.ContainsFunc(d.addresses, func(other netip.Prefix) bool { return other.Addr() == a.Addr() }) {
				return false, access.Refuse("%s: the host has the address %s itself, on %s; expected one that no machine has there, "+
					"or leave address= out to share the host's", p.Origin(), a.Addr(), p.Name)
			}
		}
		for _, a := range p.addresses() {
			if other := owners[a.Addr()]; other != "" {
				return false, access.Refuse("%s: %s has the address %s, as %s has; expected an address of its own for each path",
					p.Origin(), p.Name, a.Addr(), other)
			}
			owners[a.Addr()] = p.Name
		}
		fit = fit || p.unfit() == "" && (p.Way == plan.Own || len(p.addresses()) > 0)
	}
	return fit, nil
}

// hint is what may help who has named an uplink that cannot be used.
func (p *path) hint(names []string) string {
	switch {
	case p.gone && p.device == nil && len(names) > 0:
		return " (" + suggest.Hint(p.Name, names) + ")"
	case !p.gone && !p.device.up:
		return fmt.Sprintf(" (ip link set %s up changes that)", p.Name)
	}
	return ""
}
