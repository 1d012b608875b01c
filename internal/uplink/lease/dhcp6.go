// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"guise/internal/plain"
)

// client6 is a client of DHCPv6 (RFC 8415). Routers say whether it is to ask for addresses (want)
// or for the rest alone:
//
//	idle ─► selecting ─ADVERTISE─► requesting ─REPLY─► bound ─T1─► renewing ─T2─► rebinding
//	 │          ▲                                       ▲             │ REPLY         │ REPLY
//	 │          └── silence, or no address left         └─────────────┴───────────────┘
//	 └─► informing ─REPLY─► informed ─(a day)─► informing
//
// All it sends goes to all servers (ff02::1:2). They answer to the stack's link-local address, whose
// neighbours' questions the stack's kernel answers.
type client6 struct {
	device    string
	own       hardware
	linkLocal netip.Addr
	duid      []byte
	iaid      [4]byte
	send      func(frame []byte)
	random    func() float64
	phase     phase
	xid       dhcpv6.TransactionID
	retry     retry
	server    []byte // the server's identifier
	given     []given
	dns       []netip.Addr
	search    []string
	t1, t2    time.Time // of what is given
	refresh   time.Time // of the rest
	bad       string
}

// given is an address of a server.
type given struct {
	address          netip.Addr
	preferred, valid ending
}

const (
	mostWait6    = 10 * time.Minute
	mostID       = 130
	leastRefresh = 10 * time.Minute
	mostRefresh  = 24 * time.Hour
)

// want says what routers say. It starts only: what was given is kept to its end.
func (c *client6) want(now time.Time, addresses, rest bool) {
	switch {
	case addresses && (c.phase == idle || c.phase >= informing):
		c.turn(now, selecting)
	case rest && c.phase == idle:
		c.turn(now, informing)
	}
}

func (c *client6) stop() { c.phase, c.retry = idle, retry{} }

// forget drops what another network gave.
func (c *client6) forget() { c.given, c.dns, c.search = nil, nil, nil }

// turn begins a phase with a message.
func (c *client6) turn(now time.Time, to phase) {
	if to == selecting {
		c.server = nil
	}
	if c.phase = to; to != rebinding {
		var number [4]byte
		binary.BigEndian.PutUint32(number[:], uint32(c.random()*(1<<24)))
		copy(c.xid[:], number[1:])
	}
	c.retry = retry{}
	c.repeat(now)
}

func (c *client6) next() time.Time {
	var at time.Time
	switch c.phase {
	case selecting, requesting, informing, rebinding:
		at = c.retry.at
	case bound:
		at = c.t1
	case renewing:
		at = earlier(c.retry.at, c.t2)
	case informed:
		at = c.refresh
	}
	for _, g := range c.given {
		if !g.valid.forever {
			at = earlier(at, g.valid.at)
		}
	}
	return at
}

func (c *client6) tick(now time.Time) {
	had := len(c.given)
	c.given = slices.DeleteFunc(c.given, func(g given) bool { return g.valid.over(now) })
	if had > 0 && len(c.given) == 0 && c.phase >= bound && c.phase <= rebinding {
		c.dns, c.search = nil, nil
		c.turn(now, selecting)
		return
	}
	if at := c.next(); c.phase == idle || at.IsZero() || now.Before(at) {
		return
	}
	switch {
	case c.phase == requesting && c.retry.tries > 5:
		c.turn(now, selecting)
	case c.phase == bound:
		c.turn(now, renewing)
	case c.phase == renewing && !now.Before(c.t2):
		c.turn(now, rebinding)
	case c.phase == informed:
		c.turn(now, informing)
	default:
		c.repeat(now)
	}
}

// repeat sends the message of the phase.
func (c *client6) repeat(now time.Time) {
	kind := map[phase]dhcpv6.MessageType{selecting: dhcpv6.MessageTypeSolicit, requesting: dhcpv6.MessageTypeRequest,
		renewing: dhcpv6.MessageTypeRenew, rebinding: dhcpv6.MessageTypeRebind, informing: dhcpv6.MessageTypeInformationRequest}[c.phase]
	elapsed := time.Duration(0)
	if c.retry.tries > 0 {
		elapsed = min(now.Sub(c.retry.since), 0xffff*10*time.Millisecond)
	}
	m := c.message(kind, elapsed)
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList, dhcpv6.OptionInformationRefreshTime))
	if c.phase == requesting || c.phase == renewing {
		m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: c.server})
	}
	if c.phase != informing {
		m.AddOption(c.association())
	}
	c.send(udp6(c.own, c.linkLocal, m.ToBytes()))
	c.retry.sent(now, mostWait6, c.random)
	if c.phase == renewing {
		c.retry.at = now.Add(max(jitter(c.t2.Sub(now)/2, c.random), leastRepeat))
	} else if c.phase == rebinding {
		c.retry.at = now.Add(max(c.retry.at.Sub(now), leastRepeat))
	}
}

func (c *client6) message(kind dhcpv6.MessageType, elapsed time.Duration) *dhcpv6.Message {
	m := &dhcpv6.Message{MessageType: kind, TransactionID: c.xid}
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: c.duid})
	m.AddOption(dhcpv6.OptElapsedTime(elapsed))
	return m
}

func (c *client6) association() *dhcpv6.OptIANA {
	ia := &dhcpv6.OptIANA{IaId: c.iaid}
	for _, g := range c.given {
		ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: g.address.AsSlice()})
	}
	return ia
}

// release gives the addresses back.
func (c *client6) release(now time.Time) {
	if len(c.given) == 0 || c.server == nil || c.phase < bound {
		return
	}
	m := c.message(dhcpv6.MessageTypeRelease, 0)
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: c.server})
	m.AddOption(c.association())
	c.send(udp6(c.own, c.linkLocal, m.ToBytes()))
}

// handle takes a message of a server. One that does not answer what was asked is ignored.
func (c *client6) handle(now time.Time, p packet) {
	switch c.phase {
	case idle, bound, informed:
		return
	}
	m, err := dhcpv6.MessageFromBytes(p.payload)
	if err != nil || m.TransactionID != c.xid {
		return
	}
	client, server := m.Options.ClientID(), m.Options.ServerID()
	if client == nil || server == nil || !bytes.Equal(client.ToBytes(), c.duid) {
		return
	}
	id := server.ToBytes()
	if len(id) > mostID || (c.phase == requesting || c.phase == renewing) && !bytes.Equal(id, c.server) {
		return
	}
	status := m.Options.Status()
	if status != nil && status.StatusCode != iana.StatusSuccess {
		c.refuse(now, p.source, status)
		return
	}
	switch {
	case m.MessageType == dhcpv6.MessageTypeAdvertise && c.phase == selecting:
		if _, _, _, err := c.read(now, m); err != nil {
			c.complain(p.source, err)
			return
		}
		c.server = id
		c.turn(now, requesting)
	case m.MessageType == dhcpv6.MessageTypeReply && c.phase == informing:
		c.rest(m)
		refresh := min(max(m.Options.InformationRefreshTime(mostRefresh), leastRefresh), mostRefresh)
		c.phase, c.refresh, c.retry, c.bad = informed, now.Add(refresh), retry{}, ""
	case m.MessageType == dhcpv6.MessageTypeReply && c.phase >= requesting && c.phase <= rebinding:
		all, t1, t2, err := c.read(now, m)
		if err != nil {
			c.complain(p.source, err)
			if c.phase == requesting {
				c.phase = selecting // and the next message is a new search
				c.server = nil
			}
			return
		}
		c.given, c.t1, c.t2, c.server = all, t1, t2, id
		c.rest(m)
		c.phase, c.retry, c.bad = bound, retry{}, ""
	}
}

// refuse is what follows a status that is no success: another search, at the pace of this one.
func (c *client6) refuse(now time.Time, server netip.Addr, status *dhcpv6.OptStatusCode) {
	c.complain(server, fmt.Errorf("it says %s %s", status.StatusCode, status.StatusMessage))
	if c.phase == requesting || c.phase == renewing || c.phase == rebinding {
		c.phase, c.server = selecting, nil
	}
}

func (c *client6) complain(server netip.Addr, err error) {
	text := err.Error()
	if len(text) > 200 {
		text = text[:200]
	}
	c.bad = fmt.Sprintf("the DHCPv6 server %s on %s gives no address: %s", server, c.device, plain.Text(text))
}

// read judges the addresses that a server gives.
func (c *client6) read(now time.Time, m *dhcpv6.Message) (all []given, t1, t2 time.Time, err error) {
	for _, ia := range m.Options.IANA() {
		if ia.IaId != c.iaid {
			continue
		}
		if s := ia.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
			return nil, t1, t2, fmt.Errorf("it says %s %s", s.StatusCode, s.StatusMessage)
		}
		shortest, longest := time.Duration(infinite)*time.Second, time.Duration(0)
		for _, o := range ia.Options.Addresses() {
			a, _ := netip.AddrFromSlice(o.IPv6Addr)
			preferred, valid := o.PreferredLifetime, o.ValidLifetime
			if s := o.Options.Status(); !global(a) || !a.Is6() || preferred > valid || valid < leastLease ||
				s != nil && s.StatusCode != iana.StatusSuccess || len(all) >= mostAddresses {
				continue
			}
			all = append(all, given{a, endOf(now, uint32(preferred/time.Second)), endOf(now, uint32(valid/time.Second))})
			longest = max(longest, valid)
			if preferred > 0 {
				shortest = min(shortest, preferred)
			}
		}
		if len(all) == 0 {
			return nil, t1, t2, fmt.Errorf("its answer has no address that a machine can have")
		}
		if longest == infinite*time.Second {
			return all, time.Time{}, time.Time{}, nil
		}
		shortest = min(max(shortest, leastLease), longest)
		after, last := renewal(ia.T1, ia.T2, longest, shortest*4/5)
		if after == 0 {
			after, last = shortest/2, shortest*4/5
		}
		return all, now.Add(after), now.Add(last), nil
	}
	return nil, t1, t2, fmt.Errorf("its answer has no address")
}

func (c *client6) rest(m *dhcpv6.Message) {
	c.dns = addresses(m.Options.DNS(), mostServers, host)
	c.search = nil
	if search := m.Options.DomainSearchList(); search != nil {
		c.search = domains(search.Labels)
	}
}

func (c *client6) add(s *State) {
	for _, g := range c.given {
		s.Addresses = append(s.Addresses, Address{netip.PrefixFrom(g.address, 128), g.preferred.time(), g.valid.time()})
	}
	s.DNS = append(s.DNS, c.dns...)
	s.Search = append(s.Search, c.search...)
	switch {
	case c.phase == rebinding && len(c.given) > 0:
		s.Trouble = append(s.Trouble, fmt.Sprintf("the DHCPv6 server does not answer on %s any more; the address %s is lost unless another server renews it",
			c.device, c.given[0].address))
	case c.bad != "":
		s.Trouble = append(s.Trouble, c.bad)
	case (c.phase == selecting || c.phase == informing) && c.retry.silent():
		s.Trouble = append(s.Trouble, fmt.Sprintf("no DHCPv6 server answers on %s since %s", c.device, clock(c.retry.since)))
	}
}
