// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// maySend is the decision of sender.go in plain Go. mac nil: the interface has no Ethernet header, and that
// of the frame only says which protocol it is.
func maySend(frame []byte, mac net.HardwareAddr) bool {
	if len(frame) < 14 || mac != nil && !slices.Equal(frame[6:12], mac) {
		return false
	}
	p := frame[14:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		return maySend4(p)
	case 0x86dd:
		return maySend6(p, mac)
	case 0x0806:
		return mac != nil && len(p) >= 28 && slices.Equal(p[:8], []byte{0, 1, 8, 0, 6, 4, 0, 1}) && slices.Equal(p[8:14], mac) && slices.Equal(p[14:18], testFour.AsSlice())
	}
	return false
}

func maySend4(p []byte) bool {
	if len(p) < 20 || p[0] != 0x45 || !slices.Equal(p[12:16], testFour.AsSlice()) {
		return false
	}
	t := p[20:]
	switch {
	case binary.BigEndian.Uint16(p[6:])&0x1fff != 0:
		return slices.Contains([]byte{1, 6, 17}, p[9])
	case p[9] != 1:
		return maySendPorts(p[9], t, 0)
	case len(t) < 8:
		return false
	case t[0] == 8:
		return testPorts.Contains(binary.BigEndian.Uint16(t[4:]))
	case t[0] == 3 || t[0] == 11 || t[0] == 12:
		in := t[8:]
		return len(in) >= 20 && in[0] == 0x45 && binary.BigEndian.Uint16(in[6:])&0x1fff == 0 && slices.Equal(in[16:20], testFour.AsSlice()) &&
			maySendPorts(in[9], in[20:], 2)
	}
	return false
}

func maySend6(p []byte, mac net.HardwareAddr) bool {
	if len(p) < 40 || p[0]>>4 != 6 || !slices.Equal(p[8:24], testSix.AsSlice()) {
		return false
	}
	next, t, whole := p[6], p[40:], true
	if next == 44 {
		if len(t) < 8 {
			return false
		}
		if next = t[0]; binary.BigEndian.Uint16(t[2:])&0xfff8 != 0 {
			return slices.Contains([]byte{58, 6, 17}, next)
		}
		t, whole = t[8:], false
	}
	switch {
	case next != 58:
		return maySendPorts(next, t, 0)
	case len(t) < 8:
		return false
	case t[0] == 135:
		return mac != nil && whole && binary.BigEndian.Uint16(p[4:]) == 32 && len(t) >= 32 && t[24] == 1 && t[25] == 1 && slices.Equal(t[26:32], mac)
	case t[0] == 128:
		return testPorts.Contains(binary.BigEndian.Uint16(t[4:]))
	case t[0] >= 1 && t[0] <= 4:
		in := t[8:]
		return len(in) >= 40 && in[0]>>4 == 6 && slices.Equal(in[24:40], testSix.AsSlice()) && maySendPorts(in[6], in[40:], 2)
	}
	return false
}

func maySendPorts(protocol byte, t []byte, at int) bool {
	return (protocol == 6 || protocol == 17) && len(t) >= 4 && testPorts.Contains(binary.BigEndian.Uint16(t[at:]))
}

// makeSent makes a frame that a stack may send, or nearly so.
func makeSent(r *rand.Rand) []byte {
	mostly := func(right, wrong []byte) []byte {
		if r.IntN(12) == 0 {
			return wrong
		}
		return right
	}
	one := func(bytes ...byte) []byte { return []byte{bytes[r.IntN(len(bytes))]} }
	port := func() []byte { return big([]uint16{61000, 61999, 8080, 61500, 60999, 62000, 22, 0}[r.IntN(8)]) }
	address := func(six bool) []byte {
		if six {
			return mostly(testSix.AsSlice(), netip.MustParseAddr("fd99::3").AsSlice())
		}
		return mostly(testFour.AsSlice(), netip.MustParseAddr("10.9.0.3").AsSlice())
	}
	peer := func(six bool) []byte {
		if six {
			return netip.MustParseAddr("fd99::1").AsSlice()
		}
		return netip.MustParseAddr("10.9.0.1").AsSlice()
	}
	header := func(six bool, protocol byte, fragment uint16, source, destination, payload []byte) []byte {
		if six {
			return slices.Concat([]byte{0x60, 0, 0, 0}, big(uint16(len(payload))), []byte{protocol, 64}, source, destination, payload)
		}
		length := mostly([]byte{0x45}, []byte{0x46})
		return slices.Concat(length, []byte{0}, big(uint16(20+len(payload))), []byte{0, 1}, big(fragment), []byte{64, protocol, 0, 0}, source, destination, payload)
	}
	six := r.IntN(2) == 0
	ping, echo, errs := byte(1), byte(8), []byte{3, 11, 12, 5, 0}
	if six {
		ping, echo, errs = 58, 128, []byte{1, 2, 3, 4, 129, 136, 133}
	}
	mac := mostly(testMAC, []byte{2, 0, 0, 0, 0, 8})
	frame := slices.Concat([]byte{2, 0, 0, 0, 0, 9}, mostly(testMAC, []byte{2, 0, 0, 0, 0, 7}))
	kind := r.IntN(8)
	if kind == 0 && !six {
		return slices.Concat(frame, []byte{8, 6}, []byte{0, 1, 8, 0, 6, 4, 0}, mostly([]byte{1}, []byte{2}), mac, address(false), make([]byte, 6), peer(false))
	}
	var payload []byte
	protocol := one(6, 17, 6, 17, 132)[0]
	switch kind {
	case 0:
		protocol = 58
		payload = slices.Concat([]byte{135, 0, 0, 0, 0, 0, 0, 0}, peer(true), mostly([]byte{1, 1}, []byte{2, 1}), mac, make([]byte, 8*(r.IntN(8)/7)))
	case 1:
		protocol = ping
		payload = slices.Concat(one(echo, echo, echo^1), []byte{0, 0, 0}, port(), make([]byte, 20))
	case 2, 3:
		inner := slices.Concat(port(), port(), make([]byte, 4))
		payload = slices.Concat(one(errs...), make([]byte, 7), header(six, one(6, 17, 1)[0], 0, peer(six), address(six), inner))
		protocol = ping
	default:
		payload = slices.Concat(port(), port(), make([]byte, 16+r.IntN(100)))
	}
	fragment := []uint16{0, 0, 0, 0x4000, 0x2000, 0x2001, 0x00b9}[r.IntN(7)]
	if six {
		switch r.IntN(5) {
		case 0:
			payload = slices.Concat([]byte{protocol, 0}, big(fragment<<3), []byte{0, 0, 0, 1}, payload)
			protocol = 44
		case 1:
			payload = slices.Concat([]byte{protocol, 0, 1, 4, 0, 0, 0, 0}, payload)
			protocol = one(0, 60, 43)[0]
		}
		return slices.Concat(frame, []byte{0x86, 0xdd}, header(six, protocol, 0, address(six), peer(six), payload))
	}
	return slices.Concat(frame, []byte{8, 0}, header(six, protocol, fragment, address(six), peer(six), payload))
}

func testSender(t testing.TB, mac net.HardwareAddr) *filter {
	t.Helper()
	return loaded(t, func() (*filter, error) { return newSender(loopback, mac) })
}

// sends reports whether the program lets the frame out.
func (f *filter) sends(t testing.TB, frame []byte, expected bool) bool {
	t.Helper()
	const redirect = 7 // TC_ACT_REDIRECT
	result, _, err := f.program.Test(frame)
	if errors.Is(err, unix.EINVAL) && len(frame) < 14+40 {
		return expected
	}
	if err != nil {
		t.Fatal(err)
	}
	if result != redirect && result != dropFrame {
		t.Fatalf("the program says %d", result)
	}
	return result == redirect
}

func TestTheSenderPassesWhatIsTheStacks(t *testing.T) {
	for _, mac := range []net.HardwareAddr{testMAC, nil} {
		f := testSender(t, mac)
		r := rand.New(rand.NewPCG(7, 8))
		passed := map[bool]int{}
		for i := range 40000 {
			frame := makeSent(r)
			if i%2 == 1 {
				frame = damage(r, frame)
			}
			want := maySend(frame, mac)
			if got := f.sends(t, frame, want); got != want {
				t.Fatalf("frame %d, of %v: sends %v, expected %v\n% x", i, mac, got, want, frame)
			}
			passed[want]++
		}
		if passed[true] < 4000 || passed[false] < 4000 {
			t.Errorf("%v: they are no test", passed)
		}
	}
}

// Received frames are mostly what a stack must not send.
func FuzzSender(f *testing.F) {
	sender := testSender(f, testMAC)
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		f.Add(makeSent(r))
		f.Add(makeFrame(r))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 15 || len(frame) > 3000 {
			return
		}
		if want := maySend(frame, testMAC); sender.sends(t, frame, want) != want {
			t.Errorf("sends: expected %v\n% x", want, frame)
		}
	})
}
