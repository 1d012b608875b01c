// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"guise/internal/plain"
)

// client4 is a client of DHCP (RFC 2131). It is told what happens and when, and has no clock and no
// socket of its own:
//
//	idle ──start──► selecting ──OFFER──► requesting ──ACK──► bound ──T1──► renewing ──T2──► rebinding
//	  ▲                 ▲ ▲                  │                 ▲              │ ACK            │ ACK
//	  └─ stop (each)    │ └── NAK, silence ──┘                 └──────────────┴────────────────┘
//	                    └───────────────────────────────── NAK, or the end of the lease ───────┘
//
// When the carrier was lost, a lease is kept, but a new server is looked for at once: it may be
// another network. The old address is asked for. What a server then says takes its place.
type client4 struct {
	device  string // in messages
	own     hardware
	mtu     int
	id      []byte // the client's identifier, option 61
	send    func(frame []byte)
	random  func() float64
	phase   phase
	xid     dhcpv4.TransactionID
	retry   retry
	offer   *lease4
	lease   *lease4
	refused int    // how often a server has taken back what it offered, without a lease between
	bad     string // what made no sense
}

type phase int

const (
	idle phase = iota
	selecting
	requesting
	bound
	renewing
	rebinding
	informing // of DHCPv6
	informed
)

// lease4 is what a server gives.
type lease4 struct {
	prefix   netip.Prefix
	server   netip.Addr
	mac      hardware // of the server, or of the gateway to it
	gateways []netip.Addr
	routes   []Route
	dns      []netip.Addr
	search   []string
	mtu      int
	forever  bool
	t1, t2   time.Time
	until    time.Time
}

const (
	mostWait4   = 2 * time.Minute
	leastLease  = 10 * time.Second
	leastRenew  = 2 * time.Second
	leastRepeat = 10 * time.Second
	mostRefused = 6
)

func (c *client4) start(now time.Time) {
	if c.phase == idle {
		c.discover(now)
	}
}

func (c *client4) stop() { c.phase, c.offer, c.retry = idle, nil, retry{} }

func (c *client4) discover(now time.Time) {
	c.phase, c.offer, c.retry = selecting, nil, retry{}
	c.begin()
	if c.refused > 0 {
		// A server that takes back each offer is not asked at once again and again.
		c.retry.at = now.Add(jitter(firstWait<<min(c.refused, mostRefused), c.random))
		return
	}
	c.repeat(now)
}

func (c *client4) begin() {
	binary.BigEndian.PutUint32(c.xid[:], uint32(c.random()*(1<<32)))
}

// next is when tick is to be called.
func (c *client4) next() time.Time {
	var at time.Time
	switch c.phase {
	case selecting, requesting:
		at = c.retry.at
	case bound:
		at = c.lease.t1
	case renewing:
		at = earlier(c.retry.at, c.lease.t2)
	case rebinding:
		at = c.retry.at
	}
	if c.lease != nil && !c.lease.forever {
		at = earlier(at, c.lease.until)
	}
	return at
}

func (c *client4) tick(now time.Time) {
	if c.lease != nil && !c.lease.forever && !now.Before(c.lease.until) {
		c.lease = nil
		if c.phase >= bound {
			c.discover(now)
			return
		}
	}
	if at := c.next(); c.phase == idle || at.IsZero() || now.Before(at) {
		return
	}
	switch {
	case c.phase == requesting && c.retry.tries > 4:
		c.discover(now)
		return
	case c.phase == bound:
		c.phase, c.retry = renewing, retry{}
		c.begin()
	case c.phase == renewing && !now.Before(c.lease.t2):
		c.phase, c.retry = rebinding, retry{}
	}
	c.repeat(now)
}

// repeat sends the message of the phase.
func (c *client4) repeat(now time.Time) {
	kind := dhcpv4.MessageTypeRequest
	if c.phase == selecting {
		kind = dhcpv4.MessageTypeDiscover
	}
	m := c.message(kind)
	if c.retry.tries > 0 {
		m.NumSeconds = uint16(min(now.Sub(c.retry.since)/time.Second, 0xffff))
	}
	m.UpdateOption(dhcpv4.OptMaxMessageSize(1500))
	m.UpdateOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionClasslessStaticRoute, dhcpv4.OptionRouter,
		dhcpv4.OptionDomainNameServer, dhcpv4.OptionDomainName, dhcpv4.OptionDNSDomainSearchList, dhcpv4.OptionInterfaceMTU,
		dhcpv4.OptionRenewTimeValue, dhcpv4.OptionRebindingTimeValue))
	source, destination, to := netip.IPv4Unspecified(), broadcast4, everybody
	switch c.phase {
	case selecting:
		m.SetBroadcast()
		if c.lease != nil {
			m.UpdateOption(dhcpv4.OptRequestedIPAddress(c.lease.prefix.Addr().AsSlice()))
		}
	case requesting:
		m.SetBroadcast()
		m.UpdateOption(dhcpv4.OptRequestedIPAddress(c.offer.prefix.Addr().AsSlice()))
		m.UpdateOption(dhcpv4.OptServerIdentifier(c.offer.server.AsSlice()))
	case renewing:
		source, destination, to = c.lease.prefix.Addr(), c.lease.server, c.lease.mac
		m.ClientIPAddr = source.AsSlice()
	case rebinding:
		source = c.lease.prefix.Addr()
		m.ClientIPAddr = source.AsSlice()
	}
	c.send(udp4(c.own, to, source, destination, m.ToBytes()))
	c.retry.sent(now, mostWait4, c.random)
	if c.phase >= renewing {
		end := c.lease.until
		if c.phase == renewing {
			end = c.lease.t2
		}
		c.retry.at = now.Add(max(jitter(end.Sub(now)/2, c.random), leastRepeat))
	}
}

func (c *client4) message(kind dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	m := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, TransactionID: c.xid, ClientHWAddr: c.own[:],
		ClientIPAddr: net.IPv4zero, YourIPAddr: net.IPv4zero, ServerIPAddr: net.IPv4zero, GatewayIPAddr: net.IPv4zero, Options: dhcpv4.Options{}}
	m.UpdateOption(dhcpv4.OptMessageType(kind))
	m.UpdateOption(dhcpv4.OptClientIdentifier(c.id))
	return m
}

// release gives the address back.
func (c *client4) release() {
	if c.lease == nil || c.phase < bound {
		return
	}
	c.begin()
	m := c.message(dhcpv4.MessageTypeRelease)
	m.ClientIPAddr = c.lease.prefix.Addr().AsSlice()
	m.UpdateOption(dhcpv4.OptServerIdentifier(c.lease.server.AsSlice()))
	c.send(udp4(c.own, c.lease.mac, c.lease.prefix.Addr(), c.lease.server, m.ToBytes()))
}

// handle takes a message of a server. One that does not answer what was asked is ignored.
func (c *client4) handle(now time.Time, p packet) {
	if c.phase == idle || c.phase == bound {
		return
	}
	m, err := dhcpv4.FromBytes(p.payload)
	if err != nil || m.OpCode != dhcpv4.OpcodeBootReply || m.TransactionID != c.xid || m.ClientHWAddr.String() != net.HardwareAddr(c.own[:]).String() {
		return
	}
	server, ok := address4(m.Options.Get(dhcpv4.OptionServerIdentifier))
	if !ok || !host(server) {
		return
	}
	switch kind := m.MessageType(); {
	case kind == dhcpv4.MessageTypeNak:
		if c.phase == requesting && server == c.offer.server || c.phase == renewing && server == c.lease.server || c.phase == rebinding {
			c.lease = nil
			c.refused++
			if c.phase != requesting {
				c.refused = 0
			}
			c.discover(now)
		}
	case kind == dhcpv4.MessageTypeOffer && c.phase == selecting:
		l, err := c.read(now, m, server, p.mac)
		if err != nil {
			c.complain(server, err)
			return
		}
		c.phase, c.offer, c.retry = requesting, l, retry{}
		c.repeat(now)
	case kind == dhcpv4.MessageTypeAck && c.phase >= requesting:
		if c.phase == requesting && server != c.offer.server || c.phase == renewing && server != c.lease.server {
			return
		}
		l, err := c.read(now, m, server, p.mac)
		if err == nil && c.phase == requesting && l.prefix.Addr() != c.offer.prefix.Addr() {
			err = fmt.Errorf("it offered %s and gave %s", c.offer.prefix.Addr(), l.prefix.Addr())
		}
		if err != nil {
			c.complain(server, err)
			return
		}
		c.phase, c.lease, c.offer, c.retry, c.refused, c.bad = bound, l, nil, retry{}, 0, ""
	}
}

func (c *client4) complain(server netip.Addr, err error) {
	c.bad = fmt.Sprintf("the DHCP server %s on %s is not obeyed: %s", server, c.device, plain.Text(err.Error()))
}

func address4(b []byte) (netip.Addr, bool) {
	if len(b) != 4 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b)), true
}

// read judges what a server gives.
func (c *client4) read(now time.Time, m *dhcpv4.DHCPv4, server netip.Addr, mac hardware) (*lease4, error) {
	own, ok := address4(m.YourIPAddr.To4())
	if !ok || !global(own) {
		return nil, fmt.Errorf("no machine can have the address %s that it gives", m.YourIPAddr)
	}
	bits, err := c.mask(own, m.Options.Get(dhcpv4.OptionSubnetMask))
	if err != nil {
		return nil, err
	}
	l := &lease4{prefix: netip.PrefixFrom(own, bits), server: server, mac: mac}
	if edge(l.prefix) {
		return nil, fmt.Errorf("%s is no address of a machine in its network", l.prefix)
	}
	if err := l.times(now, m); err != nil {
		return nil, err
	}
	gateway := func(a netip.Addr) bool { return host(a) && a != own && !edge(netip.PrefixFrom(a, bits)) }
	l.gateways = addresses(m.Router(), mostRouters, gateway)
	if m.Options.Has(dhcpv4.OptionClasslessStaticRoute) {
		l.classless(m.ClasslessStaticRoute(), gateway) // in place of option 3 (RFC 3442)
	}
	l.dns = addresses(m.DNS(), mostServers, host)
	var names []string
	if search := m.DomainSearch(); search != nil {
		names = search.Labels
	}
	if l.search = domains(names); len(l.search) == 0 {
		l.search = domains([]string{m.DomainName()})
	}
	if b := m.Options.Get(dhcpv4.OptionInterfaceMTU); len(b) == 2 {
		l.mtu = fits(int(binary.BigEndian.Uint16(b)), leastMTU4, c.mtu)
	}
	return l, nil
}

func (c *client4) mask(own netip.Addr, b []byte) (int, error) {
	if b == nil {
		ones, _ := net.IP(own.AsSlice()).DefaultMask().Size()
		return ones, nil
	}
	ones, size := 0, 0
	if len(b) == 4 {
		ones, size = net.IPMask(b).Size()
	}
	if size != 32 || ones < 8 {
		return 0, fmt.Errorf("%v is no mask of a network; expected 8 to 32 ones", net.IP(b))
	}
	return ones, nil
}

func (l *lease4) times(now time.Time, m *dhcpv4.DHCPv4) error {
	b := m.Options.Get(dhcpv4.OptionIPAddressLeaseTime)
	if len(b) != 4 {
		return fmt.Errorf("it does not say how long the lease is")
	}
	length := binary.BigEndian.Uint32(b)
	if l.forever = length == 1<<32-1; l.forever {
		return nil
	}
	span := time.Duration(length) * time.Second
	if span < leastLease {
		return fmt.Errorf("a lease of %s is too short; expected %s at least", span, leastLease)
	}
	t1, t2 := m.IPAddressRenewalTime(0), m.IPAddressRebindingTime(0)
	if t1, t2 = renewal(t1, t2, span, span*7/8); t1 == 0 {
		t1, t2 = span/2, span*7/8
	}
	l.t1, l.t2, l.until = now.Add(t1), now.Add(t2), now.Add(span)
	return nil
}

// renewal judges the times of a server; 0 for those that make no sense together. later is T2 where
// the server says only T1.
func renewal(t1, t2, span, later time.Duration) (time.Duration, time.Duration) {
	if t2 == 0 {
		t2 = later
	}
	if t1 < leastRenew || t2 <= t1 || t2 >= span {
		return 0, 0
	}
	return t1, t2
}

func (l *lease4) classless(routes []*dhcpv4.Route, gateway func(netip.Addr) bool) {
	l.gateways = nil
	for _, r := range routes {
		if r == nil || r.Dest == nil {
			continue
		}
		to, ok := address4(r.Dest.IP.To4())
		ones, size := r.Dest.Mask.Size()
		via, ok2 := address4(r.Router.To4())
		if !ok || !ok2 || size != 32 {
			continue
		}
		onLink := via.IsUnspecified()
		p := netip.PrefixFrom(to, ones).Masked()
		switch {
		case !onLink && !gateway(via):
		case ones == 0 && !onLink && len(l.gateways) < mostRouters:
			l.gateways = append(l.gateways, via)
		case ones == 0 || !host(p.Addr()) || len(l.routes) >= mostRoutes:
		case onLink:
			l.routes = append(l.routes, Route{Prefix: p})
		default:
			l.routes = append(l.routes, Route{Prefix: p, Via: via})
		}
	}
	l.gateways, l.routes = unique(l.gateways), unique(l.routes)
}

// add adds what the server gave to a state.
func (c *client4) add(s *State) {
	if l := c.lease; l != nil {
		a := Address{Prefix: l.prefix}
		if !l.forever {
			a.Preferred, a.Valid = shown(l.until), shown(l.until)
		}
		s.Addresses = append(s.Addresses, a)
		s.Gateways = append(s.Gateways, l.gateways...)
		s.Routes = append(s.Routes, l.routes...)
		s.DNS = append(s.DNS, l.dns...)
		s.Search = append(s.Search, l.search...)
		s.MTU = l.mtu
	}
	switch {
	case c.phase == rebinding && c.lease != nil:
		s.Trouble = append(s.Trouble, fmt.Sprintf("the DHCP server %s does not answer on %s any more; the address %s is lost at %s unless another server renews it",
			c.lease.server, c.device, c.lease.prefix.Addr(), clock(c.lease.until)))
	case c.bad != "":
		s.Trouble = append(s.Trouble, c.bad)
	case c.phase == selecting && c.retry.silent():
		s.Trouble = append(s.Trouble, fmt.Sprintf("no DHCP server answers on %s since %s", c.device, clock(c.retry.since)))
	}
}
