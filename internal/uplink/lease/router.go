// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// routers has what the routers of a link announce (RFC 4861, 4862, 4191, 8106). It asks for them
// until one answers, less and less often (RFC 7559). An announcement only changes what it speaks of;
// what is not announced again ends with its lifetime. Nobody can shorten the life of an address
// below two hours, unless it was shorter already (RFC 4862, 5.5.3), because anybody on the link can
// send an announcement.
type routers struct {
	device    string
	own       hardware
	deviceMTU int
	key       []byte
	send      func(frame []byte)
	random    func() float64
	running   bool
	answered  bool // since it began to run
	retry     retry
	routers   []router
	prefixes  []prefix
	dns       []named[netip.Addr]
	search    []named[string]
	mtu       int
	managed   bool // addresses are to be had by DHCPv6
	other     bool // the rest is
}

type router struct {
	address    netip.Addr
	preference int
	until      time.Time
}

// prefix is one that is announced: as on the link, for addresses (auto), or both.
type prefix struct {
	prefix           netip.Prefix
	onLink, auto     bool
	linkEnd          ending
	preferred, valid ending
}

// named is a server or a domain with its end.
type named[T comparable] struct {
	what T
	end  ending
}

// ending is when something ends.
type ending struct {
	forever bool
	at      time.Time
}

const infinite = 1<<32 - 1

func endOf(now time.Time, seconds uint32) ending {
	if seconds == infinite {
		return ending{forever: true}
	}
	return ending{at: now.Add(time.Duration(seconds) * time.Second)}
}

func (e ending) over(now time.Time) bool { return !e.forever && !now.Before(e.at) }

// time is the end as a State has it.
func (e ending) time() time.Time {
	if e.forever {
		return time.Time{}
	}
	return shown(e.at)
}

const (
	mostWaitRouter = time.Hour
	twoHours       = 2 * time.Hour
)

func (r *routers) start(now time.Time) {
	if !r.running {
		r.running, r.retry = true, retry{}
		r.ask(now)
	}
}

func (r *routers) stop() {
	r.running, r.answered, r.managed, r.other, r.retry = false, false, false, false, retry{}
}

// forget is for the first announcement since the carrier came: it may be another network, and the
// same one announces all again.
func (r *routers) forget() {
	r.routers, r.prefixes, r.dns, r.search, r.mtu = nil, nil, nil, nil, 0
}

func (r *routers) ask(now time.Time) {
	r.send(solicitation(r.own))
	r.retry.sent(now, mostWaitRouter, r.random)
}

func (r *routers) next() time.Time {
	var at time.Time
	if r.running {
		at = r.retry.at
	}
	soon := func(e ending) {
		if !e.forever {
			at = earlier(at, e.at)
		}
	}
	for _, one := range r.routers {
		at = earlier(at, one.until)
	}
	for _, p := range r.prefixes {
		if p.onLink {
			soon(p.linkEnd)
		}
		if p.auto {
			soon(p.valid)
		}
	}
	for _, d := range r.dns {
		soon(d.end)
	}
	for _, d := range r.search {
		soon(d.end)
	}
	return at
}

func (r *routers) tick(now time.Time) {
	r.routers = slices.DeleteFunc(r.routers, func(o router) bool { return !now.Before(o.until) })
	for i := range r.prefixes {
		p := &r.prefixes[i]
		p.onLink = p.onLink && !p.linkEnd.over(now)
		p.auto = p.auto && !p.valid.over(now)
	}
	r.prefixes = slices.DeleteFunc(r.prefixes, func(p prefix) bool { return !p.onLink && !p.auto })
	r.dns = slices.DeleteFunc(r.dns, func(d named[netip.Addr]) bool { return d.end.over(now) })
	r.search = slices.DeleteFunc(r.search, func(d named[string]) bool { return d.end.over(now) })
	if !r.running {
		return
	}
	if r.retry.at.IsZero() && len(r.routers) == 0 {
		r.retry = retry{}
		r.ask(now) // the last one is gone
	} else if !r.retry.at.IsZero() && !now.Before(r.retry.at) {
		r.ask(now)
	}
}

// handle takes an announcement, from the byte behind ICMPv6's checksum on, and reports whether it is
// the first since the carrier came.
func (r *routers) handle(now time.Time, p packet) (first bool) {
	b := p.payload
	if !r.running || len(b) < 12 || !wellFormed(b[12:]) {
		return false
	}
	if first = !r.answered; first {
		r.answered = true
		r.forget()
	}
	flags, life := b[1], binary.BigEndian.Uint16(b[2:])
	r.route(now, p.source, flags, life)
	if life > 0 {
		r.retry = retry{} // RFC 7559: one that is no default router does not end the search
	}
	r.managed = r.managed || flags&0x80 != 0
	r.other = r.other || flags&0x40 != 0
	for o := range options(b[12:]) {
		switch body := o[2:]; o[0] {
		case 3:
			if len(body) == 30 {
				r.prefix(now, body)
			}
		case 5:
			if len(body) == 6 {
				r.mtu = fits(int(min(binary.BigEndian.Uint32(body[2:]), 1<<20)), leastMTU6, r.deviceMTU)
			}
		case 25:
			r.servers(now, body)
		case 31:
			r.domains(now, body)
		}
	}
	r.tick(now)
	return first
}

// wellFormed reports whether the options fill the message. One of no length would not end.
func wellFormed(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 8 || b[1] == 0 || int(b[1])*8 > len(b) {
			return false
		}
		b = b[int(b[1])*8:]
	}
	return true
}

// options yields each option, with its type and length.
func options(b []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			length := int(b[1]) * 8
			if !yield(b[:length]) {
				return
			}
			b = b[length:]
		}
	}
}

func (r *routers) route(now time.Time, address netip.Addr, flags byte, life uint16) {
	i := slices.IndexFunc(r.routers, func(o router) bool { return o.address == address })
	if life == 0 {
		if i >= 0 {
			r.routers = slices.Delete(r.routers, i, i+1)
		}
		return
	}
	if i < 0 {
		if len(r.routers) >= mostRouters {
			return
		}
		r.routers = append(r.routers, router{address: address})
		i = len(r.routers) - 1
	}
	preference := map[byte]int{0x08: 1, 0x18: -1}[flags&0x18]
	r.routers[i].preference, r.routers[i].until = preference, now.Add(time.Duration(life)*time.Second)
	slices.SortStableFunc(r.routers, func(a, b router) int { return b.preference - a.preference })
}

func (r *routers) prefix(now time.Time, b []byte) {
	address, bits := netip.AddrFrom16([16]byte(b[14:])), int(b[0])
	valid, preferred := binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])
	if bits < 16 || bits > 128 || !global(address) || preferred > valid {
		return
	}
	p := netip.PrefixFrom(address, bits).Masked()
	onLink, auto := b[1]&0x80 != 0, b[1]&0x40 != 0 && bits == 64
	i := slices.IndexFunc(r.prefixes, func(o prefix) bool { return o.prefix == p })
	if i < 0 {
		if valid == 0 || len(r.prefixes) >= mostPrefixes {
			return
		}
		r.prefixes = append(r.prefixes, prefix{prefix: p})
		i = len(r.prefixes) - 1
	}
	o := &r.prefixes[i]
	if onLink {
		o.onLink, o.linkEnd = valid > 0, endOf(now, valid)
	}
	if !auto {
		return
	}
	end := endOf(now, valid)
	switch {
	case !o.auto:
		o.valid = end
	case valid == infinite || time.Duration(valid)*time.Second > twoHours || !o.valid.forever && end.at.After(o.valid.at):
		o.valid = end
	case o.valid.forever || o.valid.at.Sub(now) > twoHours:
		o.valid = ending{at: now.Add(twoHours)}
	}
	o.auto, o.preferred = true, endOf(now, preferred)
}

func (r *routers) servers(now time.Time, b []byte) {
	if len(b) < 22 || (len(b)-6)%16 != 0 {
		return
	}
	for end, b := endOf(now, binary.BigEndian.Uint32(b[2:])), b[6:]; len(b) > 0; b = b[16:] {
		if a := netip.AddrFrom16([16]byte(b)); host(a) {
			r.dns = renewed(r.dns, a, end, mostServers)
		}
	}
}

func (r *routers) domains(now time.Time, b []byte) {
	if len(b) < 14 {
		return
	}
	end, b := endOf(now, binary.BigEndian.Uint32(b[2:])), b[6:]
	for len(b) > 0 && b[0] != 0 {
		var labels []string
		for len(b) > 0 && b[0] != 0 {
			length := int(b[0])
			if length > 63 || length >= len(b) {
				return
			}
			labels, b = append(labels, string(b[1:1+length])), b[1+length:]
		}
		if len(b) == 0 {
			return
		}
		b = b[1:]
		for _, name := range domains([]string{strings.Join(labels, ".")}) {
			r.search = renewed(r.search, name, end, mostDomains)
		}
	}
}

func renewed[T comparable](all []named[T], what T, end ending, most int) []named[T] {
	for i := range all {
		if all[i].what == what {
			all[i].end = end
			return all
		}
	}
	if len(all) < most {
		all = append(all, named[T]{what, end})
	}
	return all
}

// identifier is the stack's part of an address in a prefix: by a secret it is another one in each
// network, so that the stack is not followed from one to the next (RFC 7217), and otherwise it comes
// from the MAC address.
func (r *routers) identifier(p netip.Prefix) [8]byte {
	if len(r.key) == 0 {
		m := r.own
		return [8]byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	}
	h := hmac.New(sha256.New, r.key)
	network := p.Addr().As16()
	h.Write(network[:8])
	h.Write(r.own[:])
	return [8]byte(h.Sum(nil))
}

func (r *routers) add(s *State) {
	for _, p := range r.prefixes {
		if p.onLink {
			s.OnLink = append(s.OnLink, p.prefix)
		}
		if !p.auto {
			continue
		}
		a := p.prefix.Addr().As16()
		id := r.identifier(p.prefix)
		copy(a[8:], id[:])
		bits := 128
		if p.onLink {
			bits = 64
		}
		s.Addresses = append(s.Addresses, Address{netip.PrefixFrom(netip.AddrFrom16(a), bits), p.preferred.time(), p.valid.time()})
	}
	for _, one := range r.routers {
		s.Gateways = append(s.Gateways, one.address)
	}
	for _, d := range r.dns {
		s.DNS = append(s.DNS, d.what)
	}
	for _, d := range r.search {
		s.Search = append(s.Search, d.what)
	}
	if r.running && r.retry.silent() {
		s.Trouble = append(s.Trouble, fmt.Sprintf("no router announces a way out by IPv6 on %s since %s", r.device, clock(r.retry.since)))
	}
}
