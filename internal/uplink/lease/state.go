// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"net/netip"
	"reflect"
	"slices"
	"time"
)

// State is what the network has given. Nothing in it is written again once it is sent.
type State struct {
	Addresses []Address
	Gateways  []netip.Addr   // default routes, the best first; those of IPv6 are link-local
	OnLink    []netip.Prefix // of IPv6: reached without a gateway, whether or not there is an address
	Routes    []Route        // of IPv4, beside the default route
	DNS       []netip.Addr   // a link-local one is on this link
	Search    []string       // domains: letters, digits, '-', '_' and '.' only
	MTU       int            // 0: that of the device
	Trouble   []string       // what does not work, a sentence for each; fit to be printed
}

// Address is one that the stack may use until then; times are zero if for ever. After Preferred it
// is not for new connections. A state without the address follows when Valid has passed.
type Address struct {
	Prefix           netip.Prefix // the address, with the length of what is on the link
	Preferred, Valid time.Time
}

// Route is a way to a network; Via is the zero Addr if that is on the link.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

func (s State) equal(o State) bool { return reflect.DeepEqual(s, o) }

// timeless is the state without its times.
func (s State) timeless() State {
	s.Addresses = slices.Clone(s.Addresses)
	for i := range s.Addresses {
		s.Addresses[i].Preferred, s.Addresses[i].Valid = time.Time{}, time.Time{}
	}
	return s
}

// soonest is the first time at which an address is no longer what the state says.
func (s State) soonest(now time.Time) time.Time {
	var first time.Time
	for _, a := range s.Addresses {
		for _, t := range []time.Time{a.Preferred, a.Valid} {
			if t.After(now) {
				first = earlier(first, t)
			}
		}
	}
	return first
}

// earlier returns the earlier one of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// shown is a time as a State has it: a later packet with the same end gives the same one.
func shown(t time.Time) time.Time { return t.Round(time.Second) }

func unique[T comparable](all []T) []T {
	var out []T
	for _, one := range all {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}
