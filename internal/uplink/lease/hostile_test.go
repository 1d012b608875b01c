// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Strangers' messages, without a network. Each fuzzer runs its seeds here; for longer:
// make/go test ./internal/uplink/lease -run '^$' -fuzz FuzzAnnouncement -fuzztime 10m

var (
	own    = hardware{2, 1, 2, 3, 4, 5}
	theirs = hardware{2, 9, 9, 9, 9, 9}
	begin  = time.Unix(1_700_000_000, 0)
)

// scene has a follower with a carrier, whose frames are kept.
type scene struct {
	*follower
	testing.TB
	now    time.Time
	frames [][]byte
}

func newScene(t testing.TB, w Want) *scene {
	s := &scene{TB: t, now: begin}
	w.Name = "up0"
	s.follower = newFollower(w, own, func(f []byte) { s.frames = append(s.frames, f) }, func() float64 { return 0.5 })
	s.hear(s.now, news{carrier: true, mtu: 1500})
	return s
}

// wait lets time pass, as run does.
func (s *scene) wait(d time.Duration) {
	s.Helper()
	end := s.now.Add(d)
	for range 1000 {
		at := s.next()
		if at.IsZero() || at.After(end) {
			s.now = end
			return
		}
		s.now = at
		s.tick(at)
	}
	s.Fatal("it does not come to rest")
}

// asked is the last message of DHCP that was sent.
func (s *scene) asked() *dhcpv4.DHCPv4 {
	s.Helper()
	frame := s.frames[len(s.frames)-1]
	m, err := dhcpv4.FromBytes(frame[headEther+headIP4+headUDP:])
	if err != nil {
		s.Fatal(err)
	}
	return m
}

var server4 = netip.MustParseAddr("10.9.0.1")

// answer answers the last message of DHCP.
func (s *scene) answer(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) {
	s.Helper()
	m, err := dhcpv4.NewReplyFromRequest(s.asked(), append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithServerIP(net.IP{10, 9, 0, 1}),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 9, 0, 1})), dhcpv4.WithYourIP(net.IP{10, 9, 0, 7}),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithRouter(net.IP{10, 9, 0, 1}), dhcpv4.WithLeaseTime(1000)}, change...)...)
	if err != nil {
		s.Fatal(err)
	}
	s.handle(s.now, packet{protocol: dhcp4, mac: theirs, source: server4, payload: m.ToBytes()})
}

func (s *scene) bind() {
	s.Helper()
	s.answer(dhcpv4.MessageTypeOffer)
	s.answer(dhcpv4.MessageTypeAck)
	if len(s.state().Addresses) != 1 {
		s.Fatalf("no address: %+v", s.state())
	}
}

func generic(code dhcpv4.OptionCode, value ...byte) dhcpv4.Modifier {
	return dhcpv4.WithGeneric(code, value)
}

func TestAnOfferThatMakesNoSenseIsNotTaken(t *testing.T) {
	for why, change := range map[string]dhcpv4.Modifier{
		"address 0.0.0.0":         dhcpv4.WithYourIP(net.IPv4zero),
		"address 224.0.0.5":       dhcpv4.WithYourIP(net.IP{224, 0, 0, 5}),
		"address 127.0.0.1":       dhcpv4.WithYourIP(net.IP{127, 0, 0, 1}),
		"address 169.254.1.1":     dhcpv4.WithYourIP(net.IP{169, 254, 1, 1}),
		"address 255.255.255.255": dhcpv4.WithYourIP(net.IPv4bcast),
		"no address of a machine": dhcpv4.WithYourIP(net.IP{10, 9, 0, 255}),
		"0.0.0.0 is no mask":      dhcpv4.WithNetmask(net.CIDRMask(0, 32)),
		"255.0.255.0 is no mask":  dhcpv4.WithNetmask(net.IPMask{255, 0, 255, 0}),
		"how long the lease":      dhcpv4.WithoutOption(dhcpv4.OptionIPAddressLeaseTime),
		"too short":               dhcpv4.WithLeaseTime(9),
	} {
		s := newScene(t, Want{IPv4: true})
		s.answer(dhcpv4.MessageTypeOffer, change)
		if got := s.state(); s.v4.phase != selecting || len(got.Addresses) > 0 || !troubled(why)(got) || !troubled("the DHCP server 10.9.0.1 on up0")(got) {
			t.Errorf("%s: %+v", why, got)
		}
		s.bind()
		if got := s.state(); got.Trouble != nil {
			t.Errorf("%s: the trouble stays: %+v", why, got)
		}
	}
}

func TestOptionsThatMakeNoSenseAreLeftOut(t *testing.T) {
	s := newScene(t, Want{IPv4: true})
	s.answer(dhcpv4.MessageTypeOffer)
	s.answer(dhcpv4.MessageTypeAck,
		dhcpv4.WithRouter(net.IPv4zero, net.IP{10, 9, 0, 7}, net.IP{10, 9, 0, 255}, net.IP{224, 0, 0, 1}, net.IP{10, 9, 0, 2}, net.IP{10, 9, 0, 2}),
		dhcpv4.WithDNS(net.IPv4zero, net.IP{127, 0, 0, 53}, net.IPv4bcast, net.IP{9, 9, 9, 9}),
		generic(dhcpv4.OptionInterfaceMTU, 0, 68), dhcpv4.WithOption(dhcpv4.OptDomainName("evil\nnameserver 6.6.6.6")),
		dhcpv4.WithDomainSearchList("ok.example", "a b.example", "x\x1b[2J.example", strings.Repeat("a.", 40)+"example"),
		dhcpv4.WithOption(dhcpv4.OptRenewTimeValue(900*time.Second)), dhcpv4.WithOption(dhcpv4.OptRebindingTimeValue(100*time.Second)))
	got := s.state()
	if !slices.Equal(got.Gateways, []netip.Addr{netip.MustParseAddr("10.9.0.2")}) || !slices.Equal(got.DNS, []netip.Addr{netip.MustParseAddr("9.9.9.9")}) ||
		got.MTU != 0 || len(got.Search) == 0 || got.Search[0] != "ok.example" {
		t.Errorf("got %+v", got)
	}
	for _, name := range got.Search {
		if strings.ContainsAny(name, " \n\x1b") {
			t.Errorf("%q", name)
		}
	}
	if s.v4.lease.t1 != s.now.Add(500*time.Second) {
		t.Errorf("it renews at %v", s.v4.lease.t1.Sub(s.now))
	}
}

func TestOnlyWhatAnswersAQuestionIsHeard(t *testing.T) {
	for name, change := range map[string]dhcpv4.Modifier{
		"another transaction": func(m *dhcpv4.DHCPv4) { m.TransactionID[0] ^= 1 },
		"another client":      func(m *dhcpv4.DHCPv4) { m.ClientHWAddr = net.HardwareAddr{2, 1, 2, 3, 4, 6} },
		"a question":          func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootRequest },
		"no server":           dhcpv4.WithoutOption(dhcpv4.OptionServerIdentifier),
		"the server 0.0.0.0":  dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4zero)),
		"another server":      dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 9, 0, 66})),
	} {
		for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak} {
			s := newScene(t, Want{IPv4: true})
			if s.answer(dhcpv4.MessageTypeOffer, change); name != "another server" && s.v4.phase != selecting {
				t.Errorf("%s: its offer is taken", name)
			}
			s = newScene(t, Want{IPv4: true})
			s.answer(dhcpv4.MessageTypeOffer)
			if s.answer(kind, change); s.v4.phase != requesting || s.v4.lease != nil {
				t.Errorf("%s: its %s is taken", name, kind)
			}
		}
	}
	s := newScene(t, Want{IPv4: true})
	s.answer(dhcpv4.MessageTypeAck)
	s.answer(dhcpv4.MessageTypeNak)
	if s.v4.phase != selecting || s.v4.lease != nil {
		t.Error("an ACK without a request is taken")
	}
}

func TestALeaseIsRenewedReboundAndLost(t *testing.T) {
	s := newScene(t, Want{IPv4: true})
	s.bind()
	sent := len(s.frames)
	s.wait(499 * time.Second)
	if len(s.frames) != sent {
		t.Errorf("%d frames before T1", len(s.frames)-sent)
	}
	s.wait(2 * time.Second)
	frame := s.frames[len(s.frames)-1]
	if m := s.asked(); s.v4.phase != renewing || !bytes.Equal(frame[:6], theirs[:]) || m.ClientIPAddr.String() != "10.9.0.7" || m.ServerIdentifier() != nil {
		t.Errorf("no renewal at T1: %v", m)
	}
	s.wait(400 * time.Second)
	if frame = s.frames[len(s.frames)-1]; s.v4.phase != rebinding || !bytes.Equal(frame[:6], everybody[:]) {
		t.Errorf("no rebinding at T2: phase %d", s.v4.phase)
	}
	s.answer(dhcpv4.MessageTypeAck, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 9, 0, 2})))
	if s.v4.phase != bound || s.v4.lease.server != netip.MustParseAddr("10.9.0.2") {
		t.Error("another server may not rebind")
	}
	s.wait(1001 * time.Second)
	if got := s.state(); len(got.Addresses) != 0 || s.v4.phase != selecting {
		t.Errorf("it is kept: %+v", got)
	}
	sent = len(s.frames)
	s.wait(time.Hour)
	if n := len(s.frames) - sent; n < 30 || n > 45 {
		t.Errorf("%d questions in an hour without a server", n)
	}
}

func TestAServerThatTakesEachOfferBackIsAskedLessAndLess(t *testing.T) {
	s := newScene(t, Want{IPv4: true})
	for begun := s.now; s.now.Sub(begun) < time.Hour; s.wait(time.Second) {
		if s.v4.phase == selecting && s.v4.retry.tries > 0 {
			s.answer(dhcpv4.MessageTypeOffer)
			s.answer(dhcpv4.MessageTypeNak)
		}
	}
	if n := len(s.frames); n < 20 || n > 200 {
		t.Errorf("%d messages in an hour", n)
	}
}

// announce is a router's message; options are put behind its head.
func (s *scene) announce(flags byte, life uint16, options ...[]byte) {
	b := binary.BigEndian.AppendUint16([]byte{64, flags}, life)
	b = append(b, make([]byte, 8)...)
	s.handle(s.now, packet{protocol: advertisement, mac: theirs, source: netip.MustParseAddr("fe80::9"), payload: append(b, bytes.Join(options, nil)...)})
}

func announced(address string, bits, flags byte, valid, preferred uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{3, 4, bits, flags}, valid)
	b = binary.BigEndian.AppendUint32(b, preferred)
	return append(append(b, 0, 0, 0, 0), netip.MustParseAddr(address).AsSlice()...)
}

func TestAnnouncementsThatMakeNoSenseAreLeftOut(t *testing.T) {
	mtu := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{5, 1, 0, 0}, n) }
	dns := append([]byte{25, 3, 0, 0, 0, 0, 1, 0}, netip.MustParseAddr("ff02::1").AsSlice()...)
	for name, option := range map[string][]byte{
		"multicast":         announced("ff05::", 64, 0xc0, 1000, 1000),
		"link-local":        announced("fe80::", 64, 0xc0, 1000, 1000),
		"unspecified":       announced("::", 64, 0xc0, 1000, 1000),
		"/0":                announced("2001:db8::", 0, 0xc0, 1000, 1000),
		"/200":              announced("2001:db8::", 200, 0xc0, 1000, 1000),
		"/48 for addresses": announced("2001:db8::", 48, 0x40, 1000, 1000),
		"preferred longer":  announced("2001:db8::", 64, 0xc0, 1000, 1001),
		"dead":              announced("2001:db8::", 64, 0xc0, 0, 0),
		"MTU 576":           mtu(576),
		"MTU 4294967295":    mtu(1<<32 - 1),
		"a group's DNS":     dns,
	} {
		s := newScene(t, Want{IPv6: true})
		if s.announce(0, 0, option); !s.state().equal(State{}) {
			t.Errorf("%s: %+v", name, s.state())
		}
	}
	s := newScene(t, Want{IPv6: true})
	s.announce(0, 1800, announced("2001:db8::", 64, 0xc0, 1000, 500), []byte{5, 0, 0, 0, 0, 0, 0, 0})
	if got := s.state(); !got.equal(State{}) {
		t.Errorf("an option of no length: %+v", got)
	}
}

func TestNobodyEndsAnAddressAtOnce(t *testing.T) {
	s := newScene(t, Want{IPv6: true})
	s.announce(0, 1800, announced("2001:db8::", 64, 0xc0, 86400, 86400))
	s.announce(0, 1800, announced("2001:db8::", 64, 0xc0, 0, 0))
	if got := s.state(); len(got.Addresses) != 1 || got.Addresses[0].Valid != s.now.Add(twoHours) {
		t.Errorf("got %+v", got)
	}
	s.wait(twoHours - time.Second)
	s.announce(0, 0, announced("2001:db8::", 64, 0xc0, 1, 1))
	if got := s.state(); len(got.Addresses) != 1 || len(got.Gateways) != 0 {
		t.Errorf("got %+v", got)
	}
	s.wait(2 * time.Second)
	if got := s.state(); len(got.Addresses) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAnotherNetworkTakesThePlaceOfTheFirstWhenItAnswers(t *testing.T) {
	s := newScene(t, Want{IPv6: true})
	s.announce(0, 1800, announced("2001:db8:1::", 64, 0xc0, 86400, 86400))
	s.v6.given = []given{{address: netip.MustParseAddr("2001:db8:1::7"), valid: ending{forever: true}}}
	s.hear(s.now, news{mtu: 1500})
	s.hear(s.now, news{carrier: true, mtu: 1500})
	if got := s.state(); len(got.Addresses) != 2 || len(got.Gateways) != 1 {
		t.Errorf("it is forgotten before another network answers: %+v", got)
	}
	s.announce(0, 1800, announced("2001:db8:2::", 64, 0xc0, 86400, 86400))
	if got := s.state(); len(got.Addresses) != 1 || !has("2001:db8:2::/64")(got) || len(got.OnLink) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestListsHaveLimits(t *testing.T) {
	s := newScene(t, Want{IPv6: true})
	for i := range 1000 {
		a := netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 2: byte(i >> 8), 3: byte(i)})
		s.announce(0, 1800, announced(a.String(), 64, 0xc0, 1000, 1000), append([]byte{25, 3, 0, 0, 0, 0, 1, 0}, a.AsSlice()...))
		s.handle(s.now, packet{protocol: advertisement, source: netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 14: byte(i >> 8), 15: byte(i)}),
			payload: []byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}})
	}
	if got := s.state(); len(got.Addresses) != mostPrefixes || len(got.Gateways) != mostRouters || len(got.DNS) != mostServers {
		t.Errorf("%d addresses, %d gateways, %d servers", len(got.Addresses), len(got.Gateways), len(got.DNS))
	}
}

func TestOftenChangingTimesAreSentSeldom(t *testing.T) {
	s := newScene(t, Want{IPv6: true})
	sent := 0
	for range 3600 {
		s.announce(0, 1800, announced("2001:db8::", 64, 0xc0, 86400, 86400))
		if state, due := s.due(s.now); state != nil && !s.now.Before(due) {
			s.sent, s.sentAt = state, s.now
			sent++
		}
		s.wait(time.Second)
	}
	if sent < 50 || sent > 61 {
		t.Errorf("%d states in an hour", sent)
	}
}

func TestOfAFloodFewMessagesAreRead(t *testing.T) {
	var f flood
	now, taken := begin, 0
	for end := begin.Add(time.Minute); now.Before(end); taken++ {
		now = now.Add(max(f.pause(now), time.Microsecond))
	}
	if taken < 59*mostMessages || taken > 61*mostMessages {
		t.Errorf("%d messages in a minute", taken)
	}
}

func TestTheSameStackIsTheSameClientWithAnotherMACAddress(t *testing.T) {
	identity := func(name string, own hardware) string {
		var frame []byte
		f := newFollower(Want{IPv4: true, Identity: []byte(name)}, own, func(b []byte) { frame = b }, func() float64 { return 0.5 })
		f.hear(begin, news{carrier: true, mtu: 1500})
		m, err := dhcpv4.FromBytes(frame[headEther+headIP4+headUDP:])
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Options.Get(dhcpv4.OptionClientIdentifier)) + string(f.v6.duid) + string(f.v6.iaid[:])
	}
	if identity("web", own) != identity("web", theirs) || identity("web", own) == identity("db", own) || identity("", own) == identity("", theirs) {
		t.Error("who a client is depends on something else")
	}
}

// sane holds for each state, whatever came.
func sane(t *testing.T, s State) {
	t.Helper()
	if len(s.Addresses) > mostPrefixes+mostAddresses+1 || len(s.Gateways) > 2*mostRouters || len(s.DNS) > 3*mostServers ||
		len(s.Search) > 3*mostDomains || len(s.Routes) > mostRoutes || len(s.OnLink) > mostPrefixes {
		t.Errorf("too much: %+v", s)
	}
	for _, a := range s.Addresses {
		if !global(a.Prefix.Addr()) || a.Prefix.Bits() < 8 || edge(a.Prefix) {
			t.Errorf("the address %v", a.Prefix)
		}
	}
	for _, a := range append(slices.Clone(s.Gateways), s.DNS...) {
		if !host(a) || slices.ContainsFunc(s.Addresses, func(o Address) bool { return slices.Contains(s.Gateways, a) && o.Prefix.Addr() == a }) {
			t.Errorf("the gateway or server %v", a)
		}
	}
	for _, name := range s.Search {
		if !isDomain(name) {
			t.Errorf("the domain %q", name)
		}
	}
	if s.MTU != 0 && (s.MTU < leastMTU4 || s.MTU >= 1500) {
		t.Errorf("an MTU of %d", s.MTU)
	}
	for _, text := range s.Trouble {
		if len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
			t.Errorf("the trouble %q", text)
		}
	}
}

func FuzzAnnouncement(f *testing.F) {
	f.Add([]byte{64, 0xc0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(append([]byte{64, 0xc0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, announced("2001:db8::", 64, 0xc0, 1000, 1000)...))
	f.Add(append([]byte{64, 0xc0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, announced("2001:db8::", 64, 0xc0, infinite, infinite)...))
	f.Add([]byte("\x40\x00\x07\x08\x00\x00\x00\x00\x00\x00\x00\x00\x1f\x03\x00\x00\x00\x00\x01\x00\x03lab\x07example\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := newScene(t, Want{IPv6: true})
		for range 2 {
			s.handle(s.now, packet{protocol: advertisement, source: netip.MustParseAddr("fe80::9"), payload: payload})
			s.wait(time.Minute)
			sane(t, s.state())
		}
		s.wait(time.Hour)
		sane(t, s.state())
	})
}

func FuzzDHCP4(f *testing.F) {
	s := newScene(f, Want{IPv4: true})
	m, _ := dhcpv4.NewReplyFromRequest(s.asked(), dhcpv4.WithMessageType(dhcpv4.MessageTypeOffer), dhcpv4.WithYourIP(net.IP{10, 9, 0, 7}),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 9, 0, 1})), dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithLeaseTime(1000),
		dhcpv4.WithRouter(net.IP{10, 9, 0, 1}), dhcpv4.WithDomainSearchList("lab.example", "b.lab.example"), generic(dhcpv4.OptionInterfaceMTU, 5, 0),
		dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(&dhcpv4.Route{Dest: &net.IPNet{IP: net.IP{192, 0, 2, 0}, Mask: net.CIDRMask(24, 32)}, Router: net.IP{10, 9, 0, 1}})))
	f.Add(m.ToBytes())
	f.Add(append(m.ToBytes(), 0xc0, 0x0c))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := newScene(t, Want{IPv4: true})
		for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck, dhcpv4.MessageTypeAck} {
			asked := s.asked()
			b := bytes.Clone(payload)
			if len(b) >= 240 { // what the client would not read further than
				copy(b, []byte{2, 1, 6})
				copy(b[4:], asked.TransactionID[:])
				copy(b[28:], own[:])
				if i := bytes.Index(b[240:], []byte{53, 1}); i >= 0 && i+2 < len(b)-240 {
					b[240+i+2] = byte(kind)
				}
			}
			s.handle(s.now, packet{protocol: dhcp4, mac: theirs, source: server4, payload: b})
			sane(t, s.state())
			s.wait(time.Minute)
		}
		s.wait(time.Hour)
		sane(t, s.state())
	})
}

func FuzzDHCP6(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x0a\x00\x03\x00\x01\x02\x09\x09\x09\x09\x09\x00\x03\x00\x28\x02\x03\x04\x05\x00\x00\x01\x00\x00\x00\x02\x00"+
		"\x00\x05\x00\x18\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x10\x00\x00\x00\x20\x00"), true)
	f.Add([]byte("\x00\x02\x00\x0a\x00\x03\x00\x01\x02\x09\x09\x09\x09\x09\x00\x17\x00\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x53"+
		"\x00\x18\x00\x0d\x03lab\x07example\x00"), false)
	f.Add([]byte("\x00\x02\x00\x0a\x00\x03\x00\x01\x02\x09\x09\x09\x09\x09\x00\x0d\x00\x09\x00\x02no\x1b[2J"), true)
	f.Fuzz(func(t *testing.T, options []byte, addresses bool) {
		s := newScene(t, Want{IPv6: true})
		s.v6.want(s.now, addresses, true)
		for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeReply, dhcpv6.MessageTypeReply} {
			b := append([]byte{byte(kind)}, s.v6.xid[:]...)
			b = append(b, 0, 1, 0, byte(len(s.v6.duid)))
			b = append(append(b, s.v6.duid...), options...)
			s.handle(s.now, packet{protocol: dhcp6, mac: theirs, source: netip.MustParseAddr("fe80::9"), payload: b})
			sane(t, s.state())
			s.wait(time.Minute)
		}
		s.wait(time.Hour)
		sane(t, s.state())
	})
}

// FuzzFrame also holds the kernel's filter to what is read behind it: it passes whatever would be.
func FuzzFrame(f *testing.F) {
	f.Add(udp4(theirs, own, server4, netip.MustParseAddr("10.9.0.7"), []byte("a message")), false)
	f.Add(udp6(theirs, netip.MustParseAddr("fe80::9"), []byte("a message")), true)
	f.Add(solicitation(theirs), true)
	f.Add(advert(), false)
	program, err := filter()
	if err != nil {
		f.Fatal(err)
	}
	var instructions []bpf.Instruction
	for _, i := range program {
		instructions = append(instructions, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	machine, err := bpf.NewVM(instructions)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, frame []byte, partial bool) {
		// Ports of a client, since its own frames are what is written above.
		for _, at := range []int{headEther + headIP4 + 2, headEther + headIP6 + 2} {
			for _, port := range []uint16{dhcp4Client, dhcp6Client} {
				b := bytes.Clone(frame)
				if len(b) >= at+2 && partial {
					binary.BigEndian.PutUint16(b[at:], port)
				}
				p, ok := read(b, own, partial)
				if !ok {
					continue
				}
				if n, err := machine.Run(b); n == 0 || err != nil {
					t.Errorf("the filter drops %x", b)
				}
				if len(p.payload) > len(b)-headEther-headIP4 || !host(p.source) || p.protocol == 0 {
					t.Errorf("%x is %+v", b, p)
				}
			}
		}
	})
}

// advert is a frame with an announcement.
func advert() []byte {
	ends := append(netip.MustParseAddr("fe80::9").AsSlice(), allHosts.AsSlice()...)
	body := []byte{routerAdvertisement, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(body[2:], ^sum(pseudo(ends, unix.IPPROTO_ICMPV6, len(body)), body))
	return ip6(theirs, allHosts, ends, unix.IPPROTO_ICMPV6, 255, body)
}

func TestFramesThatWereChangedOrForwardedAreNotRead(t *testing.T) {
	good := advert()
	if p, ok := read(good, own, false); !ok || p.protocol != advertisement || p.source != netip.MustParseAddr("fe80::9") || len(p.payload) != 12 {
		t.Fatalf("an announcement is not read: %+v", p)
	}
	for name, change := range map[string]func(b []byte){
		"a wrong checksum":   func(b []byte) { b[len(b)-1] ^= 1 },
		"a forwarded one":    func(b []byte) { b[headEther+7] = 254 },
		"for another":        func(b []byte) { copy(b, []byte{2, 7, 7, 7, 7, 7}) },
		"from a group":       func(b []byte) { b[6] |= 1 },
		"from afar":          func(b []byte) { b[headEther+8] = 0x20 },
		"longer than it is":  func(b []byte) { b[headEther+5]++ },
		"of another version": func(b []byte) { b[headEther] = 0x40 },
	} {
		b := bytes.Clone(good)
		if change(b); name == "from afar" {
			binary.BigEndian.PutUint16(b[headEther+headIP6+2:], 0)
			binary.BigEndian.PutUint16(b[headEther+headIP6+2:], ^sum(pseudo(b[headEther+8:headEther+40], unix.IPPROTO_ICMPV6, 16), b[headEther+headIP6:]))
		}
		if p, ok := read(b, own, false); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for n := range good {
		if _, ok := read(good[:n], own, false); ok {
			t.Errorf("the first %d bytes are read", n)
		}
	}
}
