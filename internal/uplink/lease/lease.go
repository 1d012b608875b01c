// SPDX-License-Identifier: GPL-2.0-only

// Package lease gets addresses from a network for a stack's interface, and keeps them for as long as
// the stack lives: DHCP (dhcp4.go), what routers announce (router.go), and DHCPv6 where they say so
// (dhcp6.go).
//
// What it promises: Follow returns a channel of states. A new one comes when something has changed,
// never two equal in a row; who reads slowly gets the last one. What fails is part of the state, and
// is tried again for ever, less and less often. When the carrier comes back all is asked for at
// once. What was given before is kept until the network answers, or to its end, because mostly it is
// the same network.
//
// How: the device, a macvtap, is used by two sockets only (port.go). A packet socket, whose
// filter passes DHCP and router advertisements and nothing else, for all protocols because the
// tap takes frames before sockets of one protocol see them; and netlink, for the carrier. Opening
// them takes privileges, following does not: a process without any does that (apart.go). One goroutine
// has three clients, which are told what happens and when (so that tests need not wait), and one timer
// for the first thing that any of them has to do. Nothing is polled: between messages, the end of a lifetime and the time of a
// renewal nothing wakes.
//
// What strangers send is believed only if it answers a question (transaction, own MAC address, and
// the server that was asked), has the right checksum and, for announcements, comes from this link.
// What makes no sense in it is left out (judge.go), lists have limits, domains have only letters of
// domains, what a server writes is made fit to be printed, and of a flood a few hundred messages a
// second are read. Anybody on a link can be its router or its server first, as everywhere.
//
// The rest is the stack's work: it answers ARP and neighbour solicitations, the servers' for its
// link-local address included, and detects IPv6 addresses that another machine has (DAD).
//
// Limits: an IPv4 address that another machine has is not detected. Clocks do not run while
// the host sleeps; the carrier mostly goes then, and all is asked for again. No temporary addresses
// (RFC 8981), no prefix delegation, no relay. An answer of a server to the stack's own address
// comes to the stack, too, which answers that it has no such port; servers ignore that.
package lease

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// Want says what is to be got.
type Want struct {
	Name      string     // of the device, in messages: that of the host's interface
	IPv4      bool       // DHCP
	IPv6      bool       // router advertisements, and DHCPv6 where they say so
	LinkLocal netip.Addr // the stack's; if it is not valid, that of the MAC address
	// Identity says to servers who the stack is, so that it gets the same address again. Where it
	// is empty the MAC address says so; with an ipvtap, which has the host's, it is needed.
	Identity []byte
	Secret   []byte // for stable addresses that differ from network to network (RFC 7217)
}

const (
	pace     = 100 * time.Millisecond // between two states
	timePace = time.Minute            // between two that differ in times alone
)

// Follow gets addresses until the context ends; then it gives them back, closes the port and the
// channel.
func (p *Port) Follow(ctx context.Context, w Want) <-chan State { return p.follow(ctx, w, 1) }

// follow does so with a clock that is faster than time, for tests: servers have leases of two
// minutes and more.
func (p *Port) follow(ctx context.Context, w Want, speed time.Duration) <-chan State {
	out := make(chan State, 1)
	f := newFollower(w, p.MAC, p.send, rand.Float64)
	begin := time.Now()
	now := func() time.Time { return begin.Add(speed * time.Since(begin)) }
	go func() {
		defer close(out)
		defer p.Close()
		f.run(ctx, p, out, now, speed)
	}()
	return out
}

// follower has the clients of a device.
type follower struct {
	want    Want
	v4      client4
	routers routers
	v6      client6
	carrier bool
	gone    bool
	since   time.Time // when the carrier was lost
	sent    *State
	sentAt  time.Time
}

func newFollower(w Want, own hardware, send func([]byte), random func() float64) *follower {
	if !w.LinkLocal.IsValid() {
		w.LinkLocal = netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: own[0] ^ 2, 9: own[1], 10: own[2], 11: 0xff, 12: 0xfe, 13: own[3], 14: own[4], 15: own[5]})
	}
	duid, iaid := append([]byte{0, 3, 0, 1}, own[:]...), [4]byte(own[2:]) // DUID-LL of Ethernet
	if len(w.Identity) > 0 {
		hash := sha256.Sum256(w.Identity)
		duid, iaid = append([]byte{0, 4}, hash[:16]...), [4]byte(hash[16:]) // DUID-UUID
	}
	f := &follower{want: w}
	f.v4 = client4{device: w.Name, own: own, send: send, random: random,
		id: slices.Concat([]byte{255}, iaid[:], duid)} // RFC 4361
	f.routers = routers{device: w.Name, own: own, key: w.Secret, send: send, random: random}
	f.v6 = client6{device: w.Name, own: own, linkLocal: w.LinkLocal, duid: duid, iaid: iaid, send: send, random: random}
	return f
}

func (f *follower) run(ctx context.Context, p *Port, out chan State, clock func() time.Time, speed time.Duration) {
	packets, links := make(chan packet), make(chan news)
	go p.receive(packets, ctx.Done())
	go p.watch(links, ctx.Done())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			f.release(clock())
			return
		case m := <-packets:
			f.handle(clock(), m)
		case n := <-links:
			f.hear(clock(), n)
		case <-timer.C:
		}
		now := clock()
		f.tick(now)
		at := f.next()
		if s, due := f.due(now); s != nil && now.Before(due) {
			at = earlier(at, due)
		} else if s != nil {
			replace(out, *s)
			f.sent, f.sentAt = s, now
		}
		timer.Stop()
		if !at.IsZero() {
			timer.Reset(at.Sub(now) / speed)
		}
	}
}

// replace puts a state into the channel, in place of one that nobody has read.
func replace(out chan State, s State) {
	for {
		select {
		case out <- s:
			return
		default:
		}
		select {
		case <-out:
		default:
		}
	}
}

// hear takes news of the device.
func (f *follower) hear(now time.Time, n news) {
	if n.mtu > 0 {
		f.v4.mtu, f.routers.deviceMTU = n.mtu, n.mtu
	}
	f.gone = f.gone || n.gone
	switch carrier := n.carrier && !f.gone; {
	case carrier && !f.carrier:
		f.carrier = true
		if f.want.IPv4 {
			f.v4.start(now)
		}
		if f.want.IPv6 {
			f.routers.start(now)
		}
	case !carrier && (f.carrier || f.since.IsZero()):
		f.carrier, f.since = false, now
		f.v4.stop()
		f.routers.stop()
		f.v6.stop()
	}
}

func (f *follower) handle(now time.Time, p packet) {
	switch {
	case p.protocol == dhcp4 && f.want.IPv4:
		f.v4.handle(now, p)
	case p.protocol == dhcp6 && f.want.IPv6:
		f.v6.handle(now, p)
	case p.protocol == advertisement && f.want.IPv6:
		if f.routers.handle(now, p) && !f.routers.managed {
			f.v6.forget()
		}
		f.v6.want(now, f.routers.managed, f.routers.other)
	}
}

func (f *follower) tick(now time.Time) {
	f.v4.tick(now)
	f.routers.tick(now)
	f.v6.tick(now)
}

func (f *follower) next() time.Time {
	return earlier(f.v4.next(), earlier(f.routers.next(), f.v6.next()))
}

func (f *follower) release(now time.Time) {
	if f.carrier {
		f.v4.release()
		f.v6.release(now)
	}
}

// state is what there is now.
func (f *follower) state() State {
	var s State
	f.v4.add(&s)
	f.routers.add(&s)
	f.v6.add(&s)
	for _, a := range s.Addresses {
		if a.Prefix.Addr().Is6() && s.MTU > 0 && s.MTU < leastMTU6 {
			s.MTU = leastMTU6 // with less the kernel has no IPv6 on a device
		}
	}
	if f.routers.mtu > 0 && (s.MTU == 0 || f.routers.mtu < s.MTU) {
		s.MTU = f.routers.mtu
	}
	s.DNS, s.Search = unique(s.DNS), unique(s.Search)
	switch {
	case f.gone:
		s.Trouble = []string{fmt.Sprintf("the interface %s is gone", f.want.Name)}
	case !f.carrier && !f.since.IsZero():
		s.Trouble = []string{fmt.Sprintf("%s has no carrier since %s", f.want.Name, clock(f.since))}
	}
	return s
}

// due returns a state that is to be sent, and when; nil if the last one is still true.
func (f *follower) due(now time.Time) (*State, time.Time) {
	s := f.state()
	switch {
	case f.sent == nil && s.equal(State{}):
		return nil, time.Time{}
	case f.sent == nil:
		return &s, now
	case s.equal(*f.sent):
		return nil, time.Time{}
	case !s.timeless().equal(f.sent.timeless()):
		return &s, f.sentAt.Add(pace)
	}
	// Announcements come often, and each moves the ends a little.
	due := f.sentAt.Add(timePace)
	if first := f.sent.soonest(f.sentAt); !first.IsZero() {
		due = earlier(due, f.sentAt.Add(first.Sub(f.sentAt)/2))
	}
	return &s, due
}
