// SPDX-License-Identifier: GPL-2.0-only

package lease

import "time"

// retry is when a message that nobody answers is sent again: after a second, then after twice as
// long each time, up to a limit, for ever. Each time differs by up to a tenth, so that many clients
// do not go on in step.
type retry struct {
	tries int
	since time.Time // the first message
	at    time.Time // the next one
}

const firstWait = time.Second

// sent notes that a message was sent.
func (r *retry) sent(now time.Time, limit time.Duration, random func() float64) {
	if r.tries == 0 {
		r.since = now
	}
	wait := limit
	if r.tries < 30 {
		wait = min(limit, firstWait<<r.tries)
	}
	r.tries++
	r.at = now.Add(jitter(wait, random))
}

func jitter(d time.Duration, random func() float64) time.Duration {
	return d + time.Duration(float64(d)*(random()-0.5)/5)
}

// silent reports whether so many messages were not answered that it is worth a word.
func (r *retry) silent() bool { return r.tries > 3 }

// clock is a time in a message, as the user's clock shows it.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }
