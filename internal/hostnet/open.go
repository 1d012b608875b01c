// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"os"

	"guise/internal/hostnet/passt"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// An opener opens the descriptor of a link with this user's rights; the holder inherits it.
// The opener may add to the host's notes. openers has one for each kind.
type opener func(h *Host, l *plan.Link) (*os.File, error)

// openLinks opens a descriptor for each link. taps are the taps that guise makes,
// in the order of their links.
func (h *Host) openLinks(links []*plan.Link, taps []madeTap, ending func() bool) error {
	for _, l := range links {
		var file *os.File
		var err error
		switch {
		case l.Auto():
			file, err = tap.Open(plan.Tap, taps[0].name)
			taps = taps[1:]
		case len(h.own) > 0 && l.Kind == plan.Tap:
			file, err = h.openOwn(l, ending)
		default:
			file, err = openers[l.Kind](h, l)
		}
		if file != nil {
			h.Links = append(h.Links, file)
		}
		if err != nil {
			h.CloseLinks()
			return err
		}
	}
	return nil
}

func openPasst(_ *Host, l *plan.Link) (*os.File, error) { return passt.Start(l) }

// openDevice opens a tap or tun that the user named, or takes an open one.
func openDevice(h *Host, l *plan.Link) (*os.File, error) {
	if l.Device != "" {
		return h.openNamed(l)
	}
	return h.openInherited(l)
}
