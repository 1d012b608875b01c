// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"guise/internal/plan"
)

// line is something that the stack is to have: a line of the plan (docs/plan.md), in one form only, so
// that two are the same when their texts are.
type line struct {
	text string
	path int // which uplink it belongs to

	link *link // of a link: what is behind it; two links are the same if this is
}

// verb is what kind of line it is: link, address and so on.
func (l line) verb() string {
	words := strings.Fields(l.text)
	if words[0] == "mptcp" {
		return words[1]
	}
	return words[0]
}

// order of the lines as they are made. They are undone the other way round.
var order = []string{"link", "sysctl", "mtu", "address", "up", "carrier", "route", "rule", "endpoint"}

// whole reports whether a line that was read has all that is looked at.
func (l line) whole() bool {
	words := strings.Fields(l.text)
	least := map[string]int{"link": 3, "mtu": 3, "address": 3, "up": 2, "carrier": 3, "route": 4, "rule": 5, "mptcp": 5, "sysctl": 3}
	if len(words) < 2 || words[0] == "mptcp" && words[1] != "endpoint" {
		return false
	}
	if least[words[0]] == 0 || len(words) < least[words[0]] || l.path < 0 || l.path >= plan.MaxUplinks {
		return false
	}
	if words[0] == "address" {
		_, err := netip.ParsePrefix(words[2])
		return err == nil
	}
	return true
}

func (l line) rank() int { return slices.Index(order, l.verb()) }

// key is the same for lines of which the stack can have one only. With a new line the old one is gone,
// so that nothing has to be undone.
func (l line) key() string {
	words := strings.Fields(l.text)
	switch l.verb() {
	case "mtu", "carrier", "sysctl":
		return words[0] + " " + words[1]
	case "endpoint":
		return strings.Join(words[:5], " ") // mptcp endpoint ADDR dev IFNAME
	}
	return ""
}

// undo is the request that takes the line away, "" where nothing has to be done.
func (l line) undo() string {
	words := strings.Fields(l.text)
	switch l.verb() {
	case "mtu", "carrier", "sysctl":
		return ""
	case "link":
		return "no link " + words[1]
	case "endpoint":
		return "no " + l.key()
	}
	return "no " + l.text
}

// family is the path and the IP version of an address or a route. Linux takes all IPv4 routes of an
// interface away with its last address, so the routes of a family go before an address goes, and come
// back after.
func (l line) family() string {
	words := strings.Fields(l.text)
	what := words[1]
	if l.verb() == "address" {
		what = words[2]
	}
	return fmt.Sprint(l.path, strings.Contains(what, ":"))
}

// loses reports whether the line, when it takes the place of another one, tells the stack of a loss.
func (l line) loses() bool { return l.verb() == "carrier" && strings.HasSuffix(l.text, " off") }

// link is one end of an uplink: what is opened on the host for it.
type link struct {
	kind  string // of the plan
	file  *os.File
	mac   string       // of the stack's interface; "": that of the host's
	local netip.Prefix // an address for the link only; or none
	mtu   int
	index int    // of the host's interface on which it was opened, ...
	host  string // ... and its MAC address then, if it matters

	settings  []string                     // sysctls of the stack's interface: KEY VALUE
	addresses func(all []netip.Addr) error // tells the host's side which addresses the stack has
	told      []netip.Addr                 // what it was told last, sorted
	inherited bool                         // of an earlier follower: it can be taken away, and no more
	closer    func()                       // closes all that is open for it
	giveBack  func()                       // to the network: what it has given; or nil
}

// tell tells the host's side which addresses the stack has.
func (k *link) tell(all []netip.Addr) error {
	slices.SortFunc(all, netip.Addr.Compare)
	all = slices.Compact(all)
	if k.addresses == nil || slices.Equal(all, k.told) {
		return nil
	}
	k.told = all
	return k.addresses(slices.Clone(all))
}

// request is the line as it is sent for the first time.
func (l line) request() (string, []*os.File) {
	if l.link == nil {
		return l.text, nil
	}
	text := fmt.Sprintf("%s fd=0", l.text)
	if l.link.mac != "" {
		text += " mac=" + l.link.mac
	}
	if l.link.mtu != 0 {
		text += fmt.Sprintf(" mtu=%d", l.link.mtu)
	}
	return text, []*os.File{l.link.file}
}

// implied are what a new link has without being told.
func (l line) implied() []line {
	if l.link == nil {
		return nil
	}
	name := strings.Fields(l.text)[1]
	lines := []line{{text: "carrier " + name + " on", path: l.path}}
	if l.link.mtu != 0 {
		lines = append(lines, line{text: fmt.Sprintf("mtu %s %d", name, l.link.mtu), path: l.path})
	}
	return lines
}

// step is one request, and what it makes of what the stack has.
type step struct {
	line
	undo bool
	loss bool // it must not wait
}

// steps are what turns what the stack has into what is wanted: first what goes, from endpoints to links,
// then what comes, from links to endpoints.
//
// So an endpoint goes before its address, and comes after the way to it. A link takes all with it except
// endpoints and rules, which are not its own in the stack: they are taken away one by one. But when a link
// is replaced by another one, and no other path has an endpoint, those that are wanted again stay: see hold.
func steps(have, wanted []line) (all []step) {
	byKey := map[string]bool{}
	for _, w := range wanted {
		if key := w.key(); key != "" {
			byKey[key] = true
		}
	}
	goes := map[int]bool{} // paths whose link goes
	endpoints := map[int]bool{}
	for _, h := range have {
		if h.verb() == "link" && !slices.Contains(wanted, h) {
			goes[h.path] = true
		}
		if h.verb() == "endpoint" {
			endpoints[h.path] = true
		}
	}
	last := func(h line) bool {
		return (h.verb() == "endpoint" || h.verb() == "rule") && endpoints[h.path] && len(endpoints) == 1
	}
	loses := map[string]bool{} // the families of paths of which an address goes: see family
	for _, h := range have {
		if h.verb() == "address" && !slices.Contains(wanted, h) {
			loses[h.family()] = true
		}
	}
	stays := func(h line) bool {
		return (!goes[h.path] || last(h)) && !(h.verb() == "route" && loses[h.family()]) && (slices.Contains(wanted, h) || byKey[h.key()])
	}
	for _, h := range have {
		alone := h.verb() == "link" || h.verb() == "rule" || h.verb() == "endpoint"
		if !stays(h) && (alone || !goes[h.path]) {
			all = append(all, step{line: h, undo: true, loss: true})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(b.rank(), a.rank()) })
	first := len(all)
	for _, w := range wanted {
		if !slices.Contains(have, w) || !stays(w) {
			all = append(all, step{line: w, loss: w.loses()})
		}
	}
	slices.SortStableFunc(all[first:], func(a, b step) int { return cmp.Compare(a.rank(), b.rank()) })
	return all
}

// after is what the stack has after a step.
func (s step) after(have []line) []line {
	have = slices.Clone(have)
	if s.undo {
		return slices.DeleteFunc(have, func(h line) bool {
			return h == s.line || s.verb() == "link" && h.path == s.path && h.verb() != "endpoint" && h.verb() != "rule"
		})
	}
	if key := s.key(); key != "" {
		have = slices.DeleteFunc(have, func(h line) bool { return h.key() == key })
	}
	return append(append(have, s.line), s.implied()...)
}

// quiet reports whether nothing has to be sent for the step.
func (s step) quiet(have []line) bool {
	if !s.undo {
		return slices.Contains(have, s.line)
	}
	// Its link is gone with it.
	return s.line.undo() == "" || !slices.Contains(have, s.line)
}
