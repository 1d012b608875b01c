// SPDX-License-Identifier: GPL-2.0-only

// Package uplink makes interfaces of the host paths of a stack, and follows what becomes of them for as
// long as the stack lives.
//
// The follower is a process that the stack's warden starts (guise follow-uplinks). It hears of changes of
// the host's interfaces, addresses and routes (host.go), and from the network of those that are the
// stack's own (ways.go). For each uplink a state says what can be done with it (path.go). From the states
// come the lines that the stack is to have, and from these and what it has the requests (line.go), which go
// to the holder's control socket.
//
// What it promises:
//   - A loss is passed on at once. What comes waits for 50 ms, so that an interface that comes with
//     its addresses and routes, or one that goes and comes in turn, makes few requests.
//   - It has no timer while nothing happens, unless an uplink has a budget (budget.go).
//   - If it is killed, the warden starts it again. What it has made goes on meanwhile. The new one knows from
//     its predecessor's notes (memory.go) what the stack has, and replaces one link after the other.
//   - MPTCP's connections always have a path, if only a dead one (hold).
//   - If the stack refuses a line, the uplink is taken out of the stack, and tried again after a second, then
//     ever more seldom. The others are not touched.
//   - When the stack ends, so does it. On the host it leaves nothing: what it opens ends with the
//     last process that has it.
//
// Limits: programs with rights over the stack may change what the follower has made, and it does not look.
package uplink

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"guise/internal/holder"
	"guise/internal/plan"
)

const (
	settleTime  = 50 * time.Millisecond // what comes waits for so long
	firstPause  = time.Second           // before an uplink that the stack refused is tried again
	longPause   = time.Minute
	shortWait   = 3 * time.Second  // at the start, for uplinks beside a usable one
	longWait    = 10 * time.Second // at the start, for the first usable one
	toldUplinks = "uplink."
)

// changer is a stack that can be changed while it runs.
type changer interface {
	Change(line string, files ...*os.File) error
}

// follower brings the stack into the state that fits the host's.
type follower struct {
	paths []*path
	mptcp bool
	stack changer
	look  func() (map[string]*device, error)
	open  func(p *path) (*link, error)
	say   func(format string, args ...any) // to the user who reads the holder's messages

	have   []line
	told   map[string]string
	named  string  // the name servers that the stack was told of last
	memory *memory // nil: nothing is noted

	held    int       // the path that is held, or -1
	until   time.Time // when it is let go; zero: not as long as it is the last
	replace time.Time // before that no further link of an earlier follower is replaced
}

// begin takes over what an earlier follower has made. Where that is not known, the stack forgets it.
func (f *follower) begin() error {
	f.held = -1
	f.named = "unknown"
	if f.memory != nil {
		f.have = f.memory.lines()
	}
	if slices.ContainsFunc(f.have, func(h line) bool { return h.path >= len(f.paths) }) {
		f.have = nil
	}
	inherited := false
	for i, h := range f.have {
		if h.verb() == "link" {
			p := f.paths[h.path]
			p.link = &link{kind: strings.Fields(h.text)[2], inherited: true, closer: func() {}}
			f.have[i].link = p.link
			inherited = true
		}
	}
	if inherited {
		return nil
	}
	f.have = nil
	return f.stack.Change("reset")
}

// graceTime is how long it may take until a new path is used.
const graceTime = time.Second

// hold keeps the last path of a stack as it was, though it is lost, until another path has come, or itself
// again, and that has been used for a moment.
//
// Why: a connection of MPTCP that has lost all its subflows has no way to tell its peer which addresses
// are gone. Linux tells it over the next subflow; if that has the connection's first address, which came
// back, the peer closes that one, too. So the last endpoint stays, with its address, also when the host has
// another one by then. It has no carrier, if that was lost, so nothing else uses it.
func (f *follower) hold(lines []line, now time.Time, all bool) []line {
	endpoint := func(l line) bool { return l.verb() == "endpoint" }
	of := func(l line) bool { return l.path == f.held }
	if !slices.ContainsFunc(lines, endpoint) {
		if i := slices.IndexFunc(f.have, endpoint); f.held < 0 && i >= 0 {
			f.held = f.have[i].path
		}
		f.until = time.Time{}
		if f.held < 0 || f.paths[f.held].link == nil || f.paths[f.held].broken != "" {
			return lines
		}
		lines = slices.DeleteFunc(lines, of)
		for _, h := range f.have {
			if of(h) && h.verb() != "carrier" {
				lines = append(lines, h)
			}
		}
		return append(lines, f.paths[f.held].carrier())
	}
	if f.held < 0 {
		return lines
	}
	if f.until.IsZero() && all {
		f.until = now.Add(graceTime)
	}
	if due(f.until, now) {
		f.held, f.until = -1, time.Time{}
		return lines
	}
	for _, h := range f.have {
		stays := h.verb() == "address" || h.verb() == "rule" || h.verb() == "endpoint" && !slices.ContainsFunc(lines, func(l line) bool { return l.key() == h.key() })
		if of(h) && stays && !slices.Contains(lines, h) && f.paths[f.held].link != nil {
			lines = append(lines, h)
		}
	}
	return lines
}

// turn looks at the host, and changes what has to be changed. With all unset only losses are passed on. It
// returns whether something is left to be done.
func (f *follower) turn(all bool) (left bool, err error) {
	devices, err := f.look()
	if err != nil {
		return true, err
	}
	taken, held := map[netip.Addr]string{}, f.holders(devices)
	for _, p := range f.paths {
		p.others = held
		p.see(devices[p.Name], taken)
	}
	if all {
		for _, p := range f.paths {
			if p.broken != "" && !time.Now().Before(p.retry) {
				p.broken = ""
				p.see(devices[p.Name], taken)
			}
			if err := f.prepare(p); err != nil {
				return true, err
			}
		}
	}
	lines := wanted(f.paths, f.mptcp)
	if f.mptcp {
		lines = f.hold(lines, time.Now(), all)
	}
	// Before the stack has an address the host must know that it has, and after it has had it.
	f.share(slices.Concat(f.have, lines))
	for _, s := range steps(f.have, lines) {
		if !s.loss && !all {
			left = true
			continue
		}
		if err := f.do(s); err != nil {
			return true, err
		}
	}
	f.share(f.have)
	left = left || !all && slices.ContainsFunc(f.paths, (*path).waits)
	f.closeUnused()
	if err := f.name(); err != nil {
		return true, err
	}
	return left, f.tell()
}

// holders are the uplinks that have an address whatever the network of another one says, so that whoever
// lies on one link takes no other one away: those to which the host or the user has given it, then the one
// that has it in the stack, then the first.
func (f *follower) holders(devices map[string]*device) map[netip.Addr]string {
	held := map[netip.Addr]string{}
	give := func(p *path, all []netip.Prefix) {
		for _, a := range all {
			if held[a.Addr()] == "" {
				held[a.Addr()] = p.Name
			}
		}
	}
	for _, p := range f.paths {
		if d := devices[p.Name]; p.Way != plan.Own && d != nil {
			give(p, d.addresses)
		}
		give(p, p.Addresses)
	}
	for _, h := range f.have {
		if h.verb() != "address" {
			continue
		}
		p, a := f.paths[h.path], netip.MustParsePrefix(strings.Fields(h.text)[2])
		if p.learns() && p.leased != nil && slices.Contains(p.leased.addresses, a) {
			give(p, []netip.Prefix{a})
		}
	}
	for _, p := range f.paths {
		if p.learns() && p.leased != nil {
			give(p, p.leased.addresses)
		}
	}
	return held
}

// waits reports whether the path is to be opened, or opened anew.
func (p *path) waits() bool {
	if p.broken != "" || p.unfit() != "" {
		return false
	}
	return (p.link == nil || p.stale()) && (p.Way == plan.Own || p.state == Usable)
}

// stale reports whether the link belongs to an interface that is not the present one.
func (p *path) stale() bool {
	return p.link != nil && !p.gone && (p.link.inherited || p.link.index != p.device.index || p.link.host != "" && p.link.host != p.device.mac)
}

// prepare opens the path's link, when it can be used.
func (f *follower) prepare(p *path) error {
	if !p.waits() {
		return nil
	}
	if p.link != nil && p.link.inherited {
		// Not all at once, so that connections always have a path.
		now := time.Now()
		if now.Before(f.replace) {
			return nil
		}
		f.replace = now.Add(graceTime)
		others := slices.ContainsFunc(f.have, func(h line) bool { return h.verb() == "endpoint" && h.path != p.place })
		if others && !p.retiring { // its subflows end while there is a link on which they can
			p.retiring = true
			return nil
		}
		p.retiring = false
		if p.Way == plan.Own { // there cannot be two of its device
			p.link = nil
			if err := f.withdraw(p); err != nil {
				return err
			}
		}
	}
	opened, err := f.open(p)
	if err != nil {
		f.fail(p, err)
		return nil
	}
	if p.link != nil {
		p.old = append(p.old, p.link)
	}
	p.link = opened
	return nil
}

// fail takes the path out of the stack for some time.
func (f *follower) fail(p *path, err error) {
	p.pause = min(max(2*p.pause, firstPause), longPause)
	p.retry = time.Now().Add(p.pause)
	if p.broken != err.Error() {
		f.say("uplink %s: %v", p.Name, err)
	}
	p.broken, p.why = err.Error(), err.Error()
	if p.state == Usable {
		p.state = Lost
	}
}

// do makes one step. What the stack does not have is no error when it has to go.
func (f *follower) do(s step) error {
	if s.quiet(f.have) {
		return nil
	}
	p := f.paths[s.path]
	text, files := s.request()
	if s.undo {
		text, files = s.line.undo(), nil
	} else if p.broken != "" {
		return nil
	}
	err := f.stack.Change(text, files...)
	var refused holder.RefusedError
	switch {
	case err == nil && !s.undo && s.verb() == "endpoint":
		p.pause = 0
	case err == nil:
	case !errors.As(err, &refused):
		return err
	case s.undo:
		// A program on the stack has taken it away, or the stack did so with something else.
	default:
		f.fail(p, fmt.Errorf("the stack refused %q: %w", text, err))
		return f.withdraw(p)
	}
	f.have = s.after(f.have)
	if f.memory != nil {
		f.memory.note(f.have)
	}
	return nil
}

// withdraw takes away all that the stack has of a path.
func (f *follower) withdraw(p *path) error {
	alone := !slices.ContainsFunc(f.have, func(h line) bool { return h.path != p.place && h.verb() == "endpoint" })
	rest := slices.DeleteFunc(slices.Clone(f.have), func(h line) bool {
		return h.path == p.place && !(alone && p.broken == "" && (h.verb() == "rule" || h.verb() == "endpoint"))
	})
	for _, s := range steps(f.have, rest) {
		if err := f.do(s); err != nil {
			return err
		}
	}
	return nil
}

// closeUnused closes the links that the stack has no longer.
func (f *follower) closeUnused() {
	used := map[*link]bool{}
	for _, h := range f.have {
		used[h.link] = true
	}
	for _, p := range f.paths {
		if p.broken != "" && p.link != nil && !used[p.link] {
			p.link.closer()
			p.link, p.leased = nil, nil
		}
		for _, old := range p.old {
			if !used[old] {
				old.closer()
			}
		}
		p.old = slices.DeleteFunc(p.old, func(old *link) bool { return !used[old] })
	}
}

// mostServers is how many name servers a stack asks.
const mostServers = 3

// nameservers are those that the stack is to ask, in place of the host's: those of the uplinks' networks, if
// all uplinks have addresses of their own. Otherwise the host uses one of the networks as well, and its
// servers are asked. They are in the order of the uplinks' metrics, one of each uplink before a second one;
// an uplink that is not usable has none.
func (f *follower) nameservers() (words string) {
	settings := make([]*plan.Uplink, len(f.paths))
	for i, p := range f.paths {
		settings[i] = p.Uplink
		if p.Way != plan.Own {
			return ""
		}
	}
	paths := slices.Clone(f.paths)
	slices.SortStableFunc(paths, func(a, b *path) int {
		return plan.MetricOf(settings, a.place) - plan.MetricOf(settings, b.place)
	})
	count := 0
	for turn := range mostServers {
		for _, p := range paths {
			if p.state == Usable && p.leased != nil && turn < len(p.leased.servers) && count < mostServers {
				words += fmt.Sprintf(" %s dev %s", p.leased.servers[turn], p.Name)
				count++
			}
		}
	}
	return words
}

// name tells the holder which name servers to ask.
func (f *follower) name() error {
	words := f.nameservers()
	if words == f.named {
		return nil
	}
	f.named = words
	err := f.stack.Change("nameservers" + words)
	if refused := (holder.RefusedError{}); err != nil && !errors.As(err, &refused) {
		return err
	}
	return nil
}

// tell has the holder answer who asks for the states of the uplinks (guise ls).
func (f *follower) tell() error {
	for _, p := range f.paths {
		why := p.why
		if why == "" && p.spent {
			why = "its budget is spent, so it is a backup path"
		}
		value := strings.TrimSuffix(string(p.state)+": "+why, ": ")
		if f.told[p.Name] == value {
			continue
		}
		f.told[p.Name] = value
		err := f.stack.Change("tell " + toldUplinks + p.Name + "=" + holder.Escape(value))
		if refused := (holder.RefusedError{}); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}

// share tells the host's side of each path the addresses of these lines.
func (f *follower) share(lines []line) {
	for _, p := range f.paths {
		if p.link == nil || p.link.inherited || p.gone || p.link.index != p.device.index {
			continue
		}
		var all []netip.Addr
		for _, l := range lines {
			if l.path == p.place && l.verb() == "address" {
				all = append(all, netip.MustParsePrefix(strings.Fields(l.text)[2]).Addr())
			}
		}
		if err := p.link.tell(all); err != nil {
			f.fail(p, err)
		}
	}
}

// next is when a path is to be tried again, zero for never.
func (f *follower) next() (first time.Time) {
	for _, p := range f.paths {
		if p.broken != "" {
			first = soonest(first, p.retry)
		}
		if p.link != nil && p.link.inherited && p.waits() {
			first = soonest(first, f.replace)
		}
	}
	return soonest(first, f.until)
}

// explain says of each path that is not usable why that is so.
// The names are of the host's interfaces.
func (f *follower) explain(names []string) (sentences []string) {
	for _, p := range f.paths {
		if p.state != Usable {
			sentences = append(sentences, p.Name+": "+p.why+p.hint(names))
		}
	}
	return sentences
}

// ready reports whether the program may start: a path is usable, and no other one is about to be.
func (f *follower) ready(waited time.Duration) (ok, final bool) {
	usable := slices.ContainsFunc(f.paths, func(p *path) bool { return p.state == Usable })
	coming := slices.ContainsFunc(f.paths, func(p *path) bool { return p.state != Usable && p.coming() })
	switch {
	case usable && (!coming || waited >= shortWait):
		return true, true
	case waited >= longWait, !usable && !coming && waited >= shortWait:
		return false, true
	}
	return false, false
}

// coming reports whether the path may be usable soon.
func (p *path) coming() bool {
	return p.broken == "" && p.unfit() == "" && p.Way == plan.Own && p.leased != nil
}

// list joins sentences to one line.
func list(sentences []string) string { return strings.Join(sentences, "; ") }
