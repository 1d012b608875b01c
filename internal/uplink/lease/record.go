// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"guise/internal/plain"
	"guise/internal/plan"
)

// A record is what the process apart (apart.go) says of the network: a State as JSON, in the one form that
// encode gives it. Whoever reads it has more rights than who wrote it, and believes nothing: what decode
// returns has passed the same judgement as what a server says, with the same limits.
//
// Lifetimes are not in it. Only who renews an address needs them; that one has ended is another record.

const (
	mostRecord  = 32 << 10
	mostTrouble = 8
	mostText    = 512 // of one trouble
	mostMTU     = 65535
)

// fit leaves out of a state what a record may not say.
func fit(s State) State {
	var f State
	for _, a := range s.Addresses {
		one := Address{Prefix: a.Prefix}
		if len(f.Addresses) < 1+mostPrefixes+mostAddresses && usable(a.Prefix) && !slices.Contains(f.Addresses, one) {
			f.Addresses = append(f.Addresses, one)
		}
	}
	isOwn := func(a netip.Addr) bool {
		return slices.ContainsFunc(f.Addresses, func(o Address) bool { return o.Prefix.Addr() == a })
	}
	f.Gateways = some(s.Gateways, 2*mostRouters, func(a netip.Addr) bool { return outside(a) && !isOwn(a) })
	f.OnLink = some(s.OnLink, mostPrefixes, func(p netip.Prefix) bool {
		return p.IsValid() && p.Addr().Is6() && p.Bits() >= 16 && onLink(p)
	})
	f.Routes = some(s.Routes, mostRoutes, func(r Route) bool {
		return r.Prefix.IsValid() && r.Prefix.Addr().Is4() && r.Prefix.Bits() > 0 && onLink(r.Prefix) &&
			(!r.Via.IsValid() && r.Prefix.Bits() >= 8 || r.Via.Is4() && outside(r.Via) && !isOwn(r.Via))
	})
	f.DNS = some(s.DNS, 3*mostServers, outside)
	f.Search = some(s.Search, 3*mostDomains, isDomain)
	if s.MTU >= leastMTU4 && s.MTU <= mostMTU {
		f.MTU = s.MTU
	}
	for _, text := range s.Trouble {
		if text = plain.Text(text); len(f.Trouble) < mostTrouble && len(text) <= mostText {
			f.Trouble = append(f.Trouble, text)
		}
	}
	return f
}

// usable reports whether the stack may have the address.
func usable(p netip.Prefix) bool {
	return p.IsValid() && global(p.Addr()) && p.Bits() >= 8 && !edge(p) && !plan.IsInside(netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
}

// outside reports whether another machine may have the address.
func outside(a netip.Addr) bool { return host(a) && !plan.IsInside(netip.PrefixFrom(a, a.BitLen())) }

// onLink reports whether a network may be on the link.
func onLink(p netip.Prefix) bool { return p == p.Masked() && host(p.Addr()) && !plan.IsInside(p) }

// some are at most so many of those that judge takes, each once.
func some[T comparable](all []T, most int, judge func(T) bool) (taken []T) {
	for _, one := range all {
		if len(taken) < most && judge(one) && !slices.Contains(taken, one) {
			taken = append(taken, one)
		}
	}
	return taken
}

// encode writes the record of a state that is fit.
func encode(s State) ([]byte, error) {
	b, err := json.Marshal(s)
	if err == nil && len(b) > mostRecord {
		err = fmt.Errorf("a record of %d bytes", len(b))
	}
	return b, err
}

var errRecord = errors.New("it said what makes no sense")

// decode reads a record. What encode would not have written of a state that is fit is none.
func decode(b []byte) (State, error) {
	var said State
	if len(b) > mostRecord {
		return State{}, fmt.Errorf("%w: more than %d bytes", errRecord, mostRecord)
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return State{}, fmt.Errorf("%w: %s", errRecord, plain.Text(err.Error()))
	}
	s := fit(said)
	if again, err := encode(s); err != nil || !bytes.Equal(again, b) {
		return State{}, fmt.Errorf("%w: addresses or numbers that no network gives", errRecord)
	}
	return s, nil
}
