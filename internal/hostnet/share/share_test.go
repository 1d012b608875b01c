// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/journal"
	"guise/internal/nettest"
)

// notes is a journal in memory.
type notes struct {
	steps  []journal.Step
	others []*journal.Journal
}

func (n *notes) Note(s journal.Step) error      { n.steps = append(n.steps, s); return nil }
func (n *notes) Others() []*journal.Journal     { return n.others }
func (n *notes) Table() string                  { return "guise_test" }
func addresses(list ...netip.Addr) []netip.Addr { return list }

// makeCable makes the interfaces in and out, two ends of a cable, and returns their indices.
func makeCable(t *testing.T) map[string]int {
	t.Helper()
	nettest.Run(t, "ip", "link", "add", "in", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "out")
	index := map[string]int{}
	for _, name := range []string{"in", "out"} {
		nettest.Run(t, "sysctl", "-q", "-w", "net.ipv6.conf."+name+".disable_ipv6=1")
		nettest.Run(t, "ip", "link", "set", name, "up")
		device, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		index[name] = device.Index
	}
	return index
}

func openShared(t *testing.T, r Request) *Shared {
	t.Helper()
	s, err := Open(r, &notes{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func tables(t *testing.T) string { return nettest.Run(t, "nft", "list", "ruleset") }

func TestTableLastsAsLongAsSomebodyKeepsIt(t *testing.T) {
	nettest.Namespace(t)
	makeCable(t)
	s := openShared(t, Request{Interface: "in", Exclusive: true})
	if !s.table.owned {
		t.Skip("skipped: the host's kernel has no owned tables (Linux 5.12)")
	}
	fd, err := unix.Dup(int(s.Keep[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if now := tables(t); !strings.Contains(now, "guise_test_in") {
		// nft lists tables of other owners, too.
		t.Errorf("the table went before its last socket:\n%s", now)
	}
	unix.Close(fd)
	if now := tables(t); strings.Contains(now, "guise_test_in") {
		t.Errorf("left:\n%s", now)
	}
}

func TestMembersCannotSeeMore(t *testing.T) {
	nettest.Namespace(t)
	makeCable(t)
	for _, exclusive := range []bool{false, true} {
		s := openShared(t, Request{Interface: "in", Addresses: addresses(testFour), Ports: testPorts, Exclusive: exclusive})
		fd := int(s.Packet.Fd())
		pass := unix.SockFilter{Code: unix.BPF_RET, K: 1<<32 - 1}
		for name, try := range map[string]func() error{
			"replace": func() error {
				return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &pass})
			},
			"remove": func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) },
			"unlock": func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 0) },
		} {
			if err := try(); !errors.Is(err, unix.EPERM) {
				t.Errorf("exclusive %v: %s the filter: %v, expected EPERM", exclusive, name, err)
			}
		}
		// Bound to another interface, it receives nothing there.
		lo, _ := net.InterfaceByName("lo")
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(be(unix.ETH_P_ALL)), Ifindex: lo.Index}); err != nil {
			t.Fatal(err)
		}
		nettest.Run(t, "ping", "-c1", "-W5", "127.0.0.1")
		if _, _, err := unix.Recvfrom(fd, make([]byte, 100), unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("exclusive %v: it received a packet of lo: %v", exclusive, err)
		}
		s.Close()
	}
}

func TestAddressesChangeWhileShared(t *testing.T) {
	nettest.Namespace(t)
	makeCable(t)
	s := openShared(t, Request{Interface: "in", Addresses: addresses(testFour, testSix), Ports: testPorts})
	third := netip.MustParseAddr("10.9.0.77")
	if err := s.SetAddresses(addresses(third, netip.MustParseAddr("fe80::1%in"), testFour)); err != nil {
		t.Fatal(err)
	}
	now := tables(t)
	for text, there := range map[string]bool{"10.9.0.2": true, "10.9.0.77": true, "fe80::1": true, "fd99::2": false} {
		var one uint32
		address := netip.MustParseAddr(text)
		if got := strings.Contains(now, text); got != there {
			t.Errorf("%s in the table: %v\n%s", text, got, now)
		}
		if got := s.filter.addresses.Lookup(address.As16(), &one) == nil; got != there {
			t.Errorf("%s in the filter: %v", text, got)
		}
	}
	if err := s.SetAddresses(nil); err != nil {
		t.Error(err)
	}
	var many []netip.Addr
	for a := testFour; len(many) <= mostAddresses; a = a.Next() {
		many = append(many, a)
	}
	if err := s.SetAddresses(many); err == nil {
		t.Error("too many addresses are taken")
	}
}

func TestWhatCannotBeSharedIsRefused(t *testing.T) {
	nettest.Namespace(t)
	makeCable(t)
	openShared(t, Request{Interface: "in", Exclusive: true})
	for want, r := range map[string]Request{
		"no interface nix": {Interface: "nix", Exclusive: true},
		"of type loopback": {Interface: "lo", Exclusive: true},
		"has no address":   {Interface: "out", Ports: testPorts},
		"already":          {Interface: "in", Exclusive: true},
	} {
		_, err := Open(r, &notes{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", r, err, want)
		}
	}
}
