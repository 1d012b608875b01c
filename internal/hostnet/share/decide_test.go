// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// The decision of filter.go and table.go in plain Go, and frames to decide about.

var (
	testFour  = netip.MustParseAddr("10.9.0.2")
	testSix   = netip.MustParseAddr("fd99::2")
	testPorts = Ports{{8080, 8080}, {61000, 61999}}
)

// toHost reports whether the frame is for this host, by its MAC address.
func toHost(frame []byte) bool { return slices.Equal(frame[:6], testMAC) }

var testMAC = []byte{2, 0, 0, 0, 0, 1}

// decide reports whether the stack gets the Ethernet frame, and whether that is hidden from the host.
func decide(frame []byte) (pass, hidden bool) {
	if len(frame) < 14 {
		return false, false
	}
	p := frame[14:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		return decide4(p, toHost(frame))
	case 0x86dd:
		return decide6(p, toHost(frame))
	case 0x0806:
		return len(p) >= 28 && slices.Equal(p[:8], []byte{0, 1, 8, 0, 6, 4, 0, 2}) && slices.Equal(p[24:28], testFour.AsSlice()), false
	}
	return false, false
}

func decide4(p []byte, host bool) (pass, hidden bool) {
	if len(p) < 20 || p[0]>>4 != 4 || p[0]&15 < 5 || !host || !slices.Equal(p[16:20], testFour.AsSlice()) {
		return false, false
	}
	if binary.BigEndian.Uint16(p[6:])&0x1fff != 0 {
		return true, false
	}
	length := int(p[0]&15) * 4
	if length > len(p) {
		return false, false
	}
	t := p[length:]
	if p[9] != 1 {
		return decidePorts(p[9], t)
	}
	switch {
	case len(t) < 8:
		return false, false
	case t[0] == 0:
		return both(t[4:])
	case slices.Contains([]byte{3, 4, 5, 11, 12}, t[0]):
		in := t[8:]
		if len(in) < 28 || in[0] != 0x45 || binary.BigEndian.Uint16(in[6:])&0x1fff != 0 {
			return false, false
		}
		return decideInner(in[9], in[20:], 1, 8)
	}
	return false, false
}

func decide6(p []byte, host bool) (pass, hidden bool) {
	if len(p) < 40 || p[0]>>4 != 6 {
		return false, false
	}
	ours := host && slices.Equal(p[24:40], testSix.AsSlice())
	next, t := p[6], p[40:]
	for range extensions {
		skip := 0
		switch {
		case next == 44 && len(t) >= 8:
			if binary.BigEndian.Uint16(t[2:])&0xfff8 != 0 {
				return ours, false
			}
			skip = 8
		case (next == 0 || next == 43 || next == 60) && len(t) >= 2:
			skip = (int(t[1]) + 1) * 8
		case slices.Contains([]byte{0, 43, 44, 60}, next):
			return false, false
		default:
			skip = -1
		}
		if skip < 0 {
			break
		}
		next, t = t[0], t[min(skip, len(t)):]
	}
	if next == 58 && len(t) >= 8 && t[0] == 136 {
		return true, false
	}
	switch {
	case !ours:
		return false, false
	case next != 58:
		return decidePorts(next, t)
	case len(t) < 8:
		return false, false
	case t[0] == 129:
		return both(t[4:])
	case t[0] >= 1 && t[0] <= 4:
		in := t[8:]
		if len(in) < 48 || in[0]>>4 != 6 {
			return false, false
		}
		return decideInner(in[6], in[40:], 58, 128)
	}
	return false, false
}

func decidePorts(protocol byte, t []byte) (pass, hidden bool) {
	if protocol != 6 && protocol != 17 || len(t) < 4 {
		return false, false
	}
	return both(t[2:])
}

func decideInner(protocol byte, t []byte, ping, echo byte) (pass, hidden bool) {
	switch {
	case protocol == 6 || protocol == 17:
		return both(t)
	case protocol == ping && t[0] == echo:
		return both(t[4:])
	}
	return false, false
}

// both decides by a port at the beginning.
func both(t []byte) (pass, hidden bool) {
	ours := testPorts.Contains(binary.BigEndian.Uint16(t))
	return ours, ours
}

// makeFrame makes a frame that is nearly or wholly the stack's.
func makeFrame(r *rand.Rand) []byte {
	pick := func(bytes ...byte) byte { return bytes[r.IntN(len(bytes))] }
	port := func() []byte {
		return big([]uint16{61000, 61999, 60999, 62000, 8080, 53, uint16(r.Uint32())}[r.IntN(7)])
	}
	l4 := func(ping []byte) (byte, []byte) {
		switch r.IntN(3) {
		case 0:
			return pick(6, 17, 132), slices.Concat(port(), port(), make([]byte, 16))
		case 1:
			return ping[0], slices.Concat([]byte{pick(ping[1], ping[2]), 0, 0, 0}, port(), make([]byte, 2+r.IntN(20)))
		}
		return ping[0], nil // an error about another packet
	}
	four := func(protocol byte, source, destination netip.Addr, options int, fragment uint16, payload []byte) []byte {
		head := make([]byte, 20+4*options)
		head[0], head[8], head[9] = 0x45+byte(options), 64, protocol
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(payload)))
		binary.BigEndian.PutUint16(head[6:], fragment)
		copy(head[12:], source.AsSlice())
		copy(head[16:], destination.AsSlice())
		for i := 20; i < len(head); i++ {
			head[i] = 1 // no operation
		}
		var sum uint32
		for i := 0; i < len(head); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(head[i:]))
		}
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		binary.BigEndian.PutUint16(head[10:], ^uint16(sum))
		return append(head, payload...)
	}
	six := func(next byte, source, destination netip.Addr, payload []byte) []byte {
		head := make([]byte, 40)
		head[0], head[6], head[7] = 0x60, next, 64
		binary.BigEndian.PutUint16(head[4:], uint16(len(payload)))
		copy(head[8:], source.AsSlice())
		copy(head[24:], destination.AsSlice())
		return append(head, payload...)
	}
	peer4, peer6 := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd99::1")
	own4, own6 := testFour, testSix
	if r.IntN(8) == 0 {
		own4, own6 = netip.MustParseAddr("10.9.0.3"), netip.MustParseAddr("fd99::3")
	}
	frame := append(slices.Clone(testMAC), 2, 0, 0, 0, 0, 9)
	if r.IntN(10) == 0 {
		frame[5] = 7 // another host's
	}
	fragment := []uint16{0, 0, 0, 0, 0x4000, 0x2000, 0x2001, 0x0100}[r.IntN(8)]
	switch r.IntN(9) {
	case 0:
		frame = append(frame, 8, 6, 0, 1, 8, 0, 6, 4, 0, pick(1, 2), 2, 0, 0, 0, 0, 9)
		frame = append(frame, slices.Concat(peer4.AsSlice(), testMAC, own4.AsSlice())...)
	case 1, 2, 3, 4:
		protocol, payload := l4([]byte{1, 0, 8})
		if payload == nil {
			inner, rest := l4([]byte{1, 8, 0})
			payload = slices.Concat([]byte{pick(3, 4, 5, 11, 12, 9), 0, 0, 0, 0, 0, 0, 0},
				four(inner, own4, peer4, r.IntN(8)/7, fragment&0x5fff, append(rest, make([]byte, 8)...)))
		}
		frame = append(frame, 8, 0)
		frame = append(frame, four(protocol, peer4, own4, max(0, r.IntN(14)-9), fragment, payload)...)
	default:
		protocol, payload := l4([]byte{58, 129, 128})
		if payload == nil {
			inner, rest := l4([]byte{58, 128, 129})
			payload = slices.Concat([]byte{pick(1, 2, 3, 4, 133, 136), 0, 0, 0, 0, 0, 0, 0}, six(inner, own6, peer6, append(rest, make([]byte, 8)...)))
		}
		for range max(0, r.IntN(9)-5) {
			switch r.IntN(3) {
			case 0:
				payload = append(slices.Concat([]byte{protocol, 0}, big(fragment&0x1fff<<3), []byte{0, 0, 0, 1}), payload...)
				protocol = 44
			case 1:
				payload = append([]byte{protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, payload...)
				protocol = 60
			case 2:
				payload = append([]byte{protocol, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, payload...)
				protocol = 51
			}
		}
		frame = append(frame, 0x86, 0xdd)
		frame = append(frame, six(protocol, peer6, own6, payload)...)
	}
	return frame
}

// damage changes bytes, or cuts the frame.
func damage(r *rand.Rand, frame []byte) []byte {
	for range r.IntN(4) {
		frame[12+r.IntN(len(frame)-12)] = byte(r.Uint32())
	}
	if r.IntN(4) == 0 {
		frame = frame[:14+r.IntN(len(frame)-13)]
	}
	return frame
}
