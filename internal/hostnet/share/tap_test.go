// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/nettest"
)

func openTap(t *testing.T) *Tap {
	t.Helper()
	s, err := OpenTap("in", testPorts, "guise_test_in")
	if err == nil {
		err = s.SetAddresses([]netip.Addr{testFour, testSix})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := unix.SetNonblock(int(s.File.Fd()), true); err != nil {
		t.Fatal(err)
	}
	return s
}

// received returns the frames that wait behind a tap.
func (t *Tap) received() (frames [][]byte) {
	buffer := make([]byte, 70000)
	for {
		n, err := unix.Read(int(t.File.Fd()), buffer)
		if err != nil {
			return frames
		}
		frames = append(frames, slices.Clone(buffer[10:n])) // behind a struct virtio_net_hdr
	}
}

func (t *Tap) send(frame []byte) error {
	_, err := unix.Write(int(t.File.Fd()), append(make([]byte, 10), frame...))
	return err
}

// arrivals returns the frames that are on their way to a packet socket, up to a last one.
func arrivals(t *testing.T, fd int, last []byte) (frames [][]byte) {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			t.Fatalf("the last frame did not come: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if n >= len(last) && slices.Equal(buffer[:len(last)], last) {
			return frames
		}
		frames = append(frames, slices.Clone(buffer[:n]))
	}
}

// What the stack may send goes out by the interface, what it may not goes nowhere: neither out, nor to the host.
func TestNothingElseGoesOutOfATap(t *testing.T) {
	nettest.Namespace(t)
	index := makeCable(t)
	s := openTap(t)
	wire := receiver(t, unix.ETH_P_ALL, index["out"])
	host := receiver(t, unix.ETH_P_ALL, index["in"])
	lo := receiver(t, unix.ETH_P_ALL, loopback)
	last := slices.Concat([]byte{2, 0, 0, 0, 0, 9}, testMAC, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, testMAC, testFour.AsSlice(), make([]byte, 6), []byte{10, 9, 0, 200})
	r := rand.New(rand.NewPCG(11, 12))
	went := 0
	for i := range 2000 {
		frame := makeSent(r)
		if i%3 == 0 {
			frame = makeFrame(r)
		}
		want := maySend(frame, testMAC)
		if err := errors.Join(s.send(frame), s.send(last)); err != nil {
			t.Fatal(err)
		}
		got := arrivals(t, wire, last)
		if (len(got) == 1) != want || len(got) > 1 || want && !slices.Equal(got[0], frame) {
			t.Fatalf("frame %d: went out %v, expected it: %v\n% x", i, len(got), want, frame)
		}
		if want {
			went++
		}
	}
	if went < 200 {
		t.Errorf("only %d frames went: they are no test", went)
	}
	for name, fd := range map[string]int{"the host's interface": host, "lo": lo} {
		buffer := make([]byte, 4096)
		for {
			n, from, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				break
			}
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
				t.Fatalf("%s received what the stack sent: % x", name, buffer[:n])
			}
		}
	}
}

// unusual are frames about which the table and the filter differ: a fragment behind a header of IPsec, of
// which the table finds that it is one, and an advertisement of a neighbour behind another header.
func unusual(frame []byte) bool {
	if frame[12] != 0x86 || len(frame) < 14+40 {
		return false
	}
	for next, t := frame[20], frame[54:]; len(t) > 8; {
		switch next {
		case 51:
			return true
		case 58:
			return t[0] == 136 && frame[20] != 58
		case 44:
			next, t = t[0], t[8:]
		case 60:
			next, t = t[0], t[min(8*(int(t[1])+1), len(t)):]
		default:
			return false
		}
	}
	return false
}

func TestATapReceivesWhatIsTheStacksAndTheHostTheRest(t *testing.T) {
	nettest.Namespace(t)
	index := makeCable(t)
	s := openTap(t)
	s.received()
	wire := receiver(t, 0x88b5, index["out"])
	host4, host6 := receiver(t, unix.ETH_P_IP, index["in"]), receiver(t, unix.ETH_P_IPV6, index["in"])
	last := append(append([]byte{}, testMAC...), 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 20, 0xab, 0xcd)
	last = append(last, make([]byte, 60)...)
	r := rand.New(rand.NewPCG(13, 14))
	hidden := 0
	for i := range 1500 {
		frame := makeFrame(r)
		for len(frame) < 60 {
			frame = append(frame, 0)
		}
		for _, f := range [][]byte{frame, last} {
			if err := unix.Sendto(wire, f, 0, &unix.SockaddrLinklayer{Ifindex: index["out"]}); err != nil {
				t.Fatal(err)
			}
		}
		seen := len(arrivals(t, host4, last[:len(last)-60]))
		for {
			if n, _, err := unix.Recvfrom(host6, make([]byte, 4096), unix.MSG_DONTWAIT); err != nil || n == 0 {
				break
			}
			seen++
		}
		pass, hide := decide(frame)
		got := s.received()
		if unusual(frame) {
			continue
		}
		if (len(got) == 1) != pass || pass && !slices.Equal(got[0], frame) {
			t.Errorf("frame %d: the stack got %d, expected it: %v\n% x", i, len(got), pass, frame)
		}
		isARP := frame[12] == 8 && frame[13] == 6
		if (seen == 0) != (hide || isARP) {
			t.Errorf("frame %d: the host got %d, hidden: %v\n% x", i, seen, hide, frame)
		}
		if hide {
			hidden++
		}
	}
	if hidden < 150 {
		t.Errorf("only %d frames were hidden: they are no test", hidden)
	}
}

// Whoever has the descriptor makes no more of it: longer frames, tags, another interface.
func TestTheDescriptorOfATapGivesNoMore(t *testing.T) {
	nettest.Namespace(t)
	index := makeCable(t)
	s := openTap(t)
	wire := receiver(t, unix.ETH_P_ALL, index["out"])
	good := slices.Concat([]byte{2, 0, 0, 0, 0, 9}, testMAC, []byte{8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0}, testFour.AsSlice(), []byte{10, 9, 0, 1},
		big(61000), []byte{0, 53, 0, 8, 0, 0})
	tagged := slices.Concat(good[:12], []byte{0x81, 0, 0, 5}, good[12:])
	long := append(slices.Clone(good), make([]byte, 1500)...)
	if err := errors.Join(s.send(tagged), s.send(long), s.send(good)); err != nil {
		t.Fatal(err)
	}
	if got := arrivals(t, wire, good); len(got) != 0 {
		t.Errorf("went out: % x", got)
	}
	// A packet to be cut into parts that are too long.
	cut := []byte{0, 3, 42, 0, 0, 8, 0, 0, 0, 0} // VIRTIO_NET_HDR_GSO_UDP, parts of 2048 bytes
	if _, err := unix.Write(int(s.File.Fd()), append(cut, append(slices.Clone(good), make([]byte, 8000)...)...)); err == nil {
		s.send(good)
		for _, f := range arrivals(t, wire, good) {
			if len(f) > 1514 {
				t.Errorf("a frame of %d bytes went out", len(f))
			}
		}
	}
	// Another MAC address of the tap, or another owner, changes nothing about what is sent.
	request, _ := unix.NewIfreq("")
	if err := unix.IoctlIfreq(int(s.File.Fd()), unix.TUNGETIFF, request); err != nil {
		t.Fatal(err)
	}
	foreign := slices.Concat(good[:6], []byte{2, 0, 0, 0, 0, 5}, good[12:])
	nettest.Run(t, "ip", "link", "set", request.Name(), "address", "02:00:00:00:00:05")
	if err := errors.Join(unix.IoctlSetInt(int(s.File.Fd()), unix.TUNSETOWNER, 1000), s.send(foreign), s.send(good)); err != nil {
		t.Fatal(err)
	}
	if got := arrivals(t, wire, good); len(got) != 0 {
		t.Errorf("went out: % x", got)
	}
	// It stays, without use, if its owner says so; Close removes it all the same.
	if err := unix.IoctlSetInt(int(s.File.Fd()), unix.TUNSETPERSIST, 1); err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(s.File.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := unix.Write(copied, append(make([]byte, 10), good...)); err == nil {
		t.Error("a tap that was closed takes frames")
	}
	if _, err := netlink.LinkByIndex(s.index); err == nil {
		t.Error("the tap is left")
	}
	if now := tables(t); strings.Contains(now, "guise") {
		t.Errorf("left:\n%s", now)
	}
}

// The program holds no longer than who answers for it, also when that is killed: its descriptors are closed
// then, as here, and nothing else is done.
func TestASenderEndsWithItsProcess(t *testing.T) {
	nettest.Namespace(t)
	index := makeCable(t)
	s := openTap(t)
	wire := receiver(t, unix.ETH_P_ALL, index["out"])
	frame := slices.Concat([]byte{2, 0, 0, 0, 0, 9}, testMAC, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, testMAC, testFour.AsSlice(), make([]byte, 6), []byte{10, 9, 0, 1})
	if err := s.send(frame); err != nil {
		t.Fatal(err)
	}
	arrivals(t, wire, frame)
	s.filter.close()
	last := slices.Concat([]byte{2, 0, 0, 0, 0, 9}, testMAC, []byte{0x88, 0xb5})
	stopped := false
	for range 3000 { // the kernel empties the array in a moment of its own
		if err := s.send(frame); err != nil {
			t.Fatal(err)
		}
		if err := unix.Sendto(wire, last, 0, &unix.SockaddrLinklayer{Ifindex: index["in"]}); err != nil {
			t.Fatal(err)
		}
		if stopped = len(arrivals(t, wire, last)) == 0; stopped {
			break
		}
		nettest.Run(t, "sleep", "0.01")
	}
	if !stopped {
		t.Error("it still sends")
	}
}

func TestWhatCannotBeBehindATapIsRefused(t *testing.T) {
	nettest.Namespace(t)
	makeCable(t)
	nettest.Run(t, "ip", "link", "add", "bridge0", "type", "bridge")
	nettest.Run(t, "ip", "link", "set", "out", "master", "bridge0")
	for device, want := range map[string]string{"nix": "no interface nix", "lo": "leads to no network", "out": "port of a bridge"} {
		if _, err := OpenTap(device, testPorts, "guise_test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", device, err, want)
		}
	}
	if left, _ := net.Interfaces(); slices.ContainsFunc(left, func(i net.Interface) bool { return strings.HasPrefix(i.Name, "guise") }) {
		t.Errorf("left: %v", left)
	}
}
