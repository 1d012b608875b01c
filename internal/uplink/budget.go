// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"time"

	"guise/internal/holder"
)

// budgets finds out when an uplink has carried as many bytes as its budget has. What counts is what the
// stack has sent and received over it, as its holder counts it (guise ls): headers included, and not
// what the host's own programs use.
//
// The kernel tells nobody that a number of bytes is reached, so the holder is asked: as often as the rate
// since the last question makes sensible, at least every two seconds, and no more when all budgets are
// spent. So a path carries a little more than its budget.
type budgets struct {
	control string
	memory  *memory
	next    time.Time // when to ask; zero: never

	links map[int]*link  // whose counters these are
	last  map[int]uint64 // what was counted
	at    time.Time
}

const (
	rarely = 2 * time.Second
	often  = 100 * time.Millisecond
)

// begin begins to count, where an earlier follower has ended.
func (b *budgets) begin(paths []*path) {
	b.links, b.last = map[int]*link{}, map[int]uint64{}
	for _, p := range paths {
		if p.Budget > 0 {
			b.next = time.Now()
		}
	}
}

// ask returns the bytes of each link.
func (b *budgets) ask() map[string]uint64 {
	counters := map[string]uint64{}
	c, err := holder.Dial(b.control)
	if err != nil {
		return counters
	}
	defer c.Close()
	status, err := c.Status(0)
	if err != nil {
		return counters
	}
	for _, l := range status.Links {
		counters[l.Name] += l.TxBytes + l.RxBytes
	}
	return counters
}

// look asks when it is time to, and reports whether a budget is spent that was not before.
func (b *budgets) look(paths []*path, now time.Time) (spent bool) {
	if !due(b.next, now) {
		return false
	}
	counters := b.ask()
	b.next = time.Time{}
	wait := rarely
	for _, p := range paths {
		if p.Budget == 0 || p.spent {
			continue
		}
		before := b.memory.get(usedBytes + p.place)
		if b.links[p.place] != p.link || counters[p.Name] < b.last[p.place] {
			before += b.last[p.place] // of a link that is gone
			b.memory.set(usedBytes+p.place, before)
			b.last[p.place] = 0
		}
		moved := counters[p.Name] - b.last[p.place]
		b.links[p.place], b.last[p.place] = p.link, counters[p.Name]
		used := before + counters[p.Name]
		if used >= p.Budget {
			p.spent, spent = true, true
			continue
		}
		// Half of the time that the rest lasts at that rate.
		if elapsed := now.Sub(b.at); moved > 0 && !b.at.IsZero() {
			wait = min(wait, time.Duration(float64(elapsed)*float64(p.Budget-used)/float64(moved)/2))
		}
		b.next = now.Add(max(wait, often))
	}
	b.at = now
	return spent
}
