// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"fmt"
	"net/netip"
	"time"

	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// patience is how long to wait for something that another stack has. A program ends a moment
// before its stack: the holder delivers what was sent, and only then gives the taps, the
// addresses and the ports back. With this wait, users who run one program after the other do
// not notice that.
const patience = 3 * time.Second

// patiently calls try until it returns true, or the time is over.
func patiently(try func() (done bool)) {
	for deadline := time.Now().Add(patience); !try() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitAddresses waits while a stack that is ending has the networks that these links would
// otherwise get: those that the user named, or else the first ones that are free. So programs
// that are run one after the other have the same addresses. If the time is over before these
// networks are free, it returns a sentence that says so.
func awaitAddresses(links []*plan.Link, ending func() bool) (note string) {
	var held netip.Prefix
	patiently(func() bool {
		s, err := survey.Host()
		if err != nil {
			return true
		}
		if held = heldByStacks(s, links); held.IsValid() && !ending() {
			held = netip.Prefix{}
		}
		return !held.IsValid()
	})
	if !held.IsValid() {
		return ""
	}
	return fmt.Sprintf("%s is still in use: a stack goes on delivering what its program sent (guise ls lists it)", held)
}

// heldByStacks returns a network on the tap of another stack that these links would get if
// there were no other stacks.
func heldByStacks(s *survey.Survey, links []*plan.Link) netip.Prefix {
	alone := s.WithoutStacks()
	for _, l := range links {
		if !l.Auto() {
			continue
		}
		wanted := l.Addresses
		if len(wanted) == 0 {
			four, err := alone.Free4()
			if err != nil {
				continue
			}
			wanted = []netip.Prefix{four.Stack}
			alone = append(alone, four.Stack.Masked())
		}
		for _, a := range wanted {
			if used, held := s.Stacks.By(a.Masked()); held {
				return used
			}
		}
	}
	return netip.Prefix{}
}
