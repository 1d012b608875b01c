// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net/netip"
	"slices"
	"time"

	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// patience is how long to wait for what another stack has. A program is gone a moment
// before its stack: the holder delivers what was sent, and then gives back the taps, the
// addresses and the ports. Who runs one program after the other need not know of it.
const patience = 3 * time.Second

// patiently tries until that is done, or the time is up.
func patiently(try func() (done bool)) {
	for deadline := time.Now().Add(patience); !try() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitAddresses waits while a tap of another stack has what the user named for these.
func awaitAddresses(links []*plan.Link) {
	var named []netip.Prefix
	for _, l := range links {
		if l.Auto() {
			named = append(named, l.Addresses...)
		}
	}
	if len(named) == 0 {
		return
	}
	patiently(func() bool {
		s, err := survey.Host()
		return err != nil || !slices.ContainsFunc(named, func(stack netip.Prefix) bool {
			_, used := s.Stacks.By(stack.Masked())
			return used
		})
	})
}
