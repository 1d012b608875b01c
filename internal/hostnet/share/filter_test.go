// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/nettest"
)

const loopback = 1 // the interface of frames of BPF_PROG_TEST_RUN

func testFilter(t testing.TB) *filter {
	t.Helper()
	return loaded(t, func() (*filter, error) { return newFilter(loopback) })
}

// loaded is a program for the stack of the tests.
func loaded(t testing.TB, load func() (*filter, error)) *filter {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: loading a filter takes root")
	}
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	if err := errors.Join(f.setPorts(testPorts), f.change([]netip.Addr{testFour, testSix}, nil)); err != nil {
		t.Fatal(err)
	}
	return f
}

// runs reports what the filter says, and expected where the kernel makes no packet of so few bytes.
// lo's address is all zeroes.
func (f *filter) runs(t testing.TB, frame []byte, expected bool) bool {
	t.Helper()
	run := append(make([]byte, 6), frame[6:]...)
	if !toHost(frame) {
		copy(run, frame[:6])
	}
	result, _, err := f.program.Test(run)
	if errors.Is(err, unix.EINVAL) && len(frame) < 14+40 {
		return expected
	}
	if err != nil {
		t.Fatal(err)
	}
	return result != 0
}

func TestFilterPassesWhatIsTheStacks(t *testing.T) {
	f := testFilter(t)
	r := rand.New(rand.NewPCG(1, 2))
	passed := 0
	for i := range 20000 {
		frame := makeFrame(r)
		if i%2 == 1 {
			frame = damage(r, frame)
		}
		want, _ := decide(frame)
		if got := f.runs(t, frame, want); got != want {
			t.Fatalf("frame %d: passes %v, expected %v\n% x", i, got, want, frame)
		}
		if want {
			passed++
		}
	}
	if passed < 2000 {
		t.Errorf("only %d frames passed: they are no test", passed)
	}
}

func FuzzFilter(f *testing.F) {
	filter := testFilter(f)
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		f.Add(makeFrame(r))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 15 || len(frame) > 3000 {
			return
		}
		if want, _ := decide(frame); filter.runs(t, frame, want) != want {
			t.Errorf("passes: expected %v\n% x", want, frame)
		}
	})
}

// receiver is a packet socket of one protocol on an interface.
func receiver(t *testing.T, protocol uint16, device int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	wait := unix.NsecToTimeval(int64(30 * time.Second))
	err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(be(protocol)), Ifindex: device}))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A packet socket of one protocol gets what is left after the chain, as the host's stack does.
func TestWhatPassesIsHiddenFromTheHost(t *testing.T) {
	nettest.Namespace(t)
	index := makeCable(t)
	s := openShared(t, Request{Interface: "in", Addresses: []netip.Addr{testFour, testSix}, Ports: testPorts})
	wire := receiver(t, 0x88b5, index["out"])
	host4, host6 := receiver(t, unix.ETH_P_IP, index["in"]), receiver(t, unix.ETH_P_IPV6, index["in"])
	// It is not the stack's, so the host gets it: then all before it has been decided.
	last := append(append([]byte{}, testMAC...), 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 20, 0xab, 0xcd)
	last = append(last, make([]byte, 60)...)
	buffer := make([]byte, 4096)
	flush := func(fd int) (n int) {
		for {
			got, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				return n
			}
			if got > 0 {
				n++
			}
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	hidden := 0
	for i := range 1500 {
		frame := makeFrame(r)
		for len(frame) < 60 {
			frame = append(frame, 0)
		}
		flush(int(s.Packet.Fd()))
		flush(host6)
		for _, f := range [][]byte{frame, last} {
			if err := unix.Sendto(wire, f, 0, &unix.SockaddrLinklayer{Ifindex: index["out"]}); err != nil {
				t.Fatal(err)
			}
		}
		seen := 0
		for {
			got, _, err := unix.Recvfrom(host4, buffer, 0)
			if err != nil {
				t.Fatalf("frame %d: the host did not get the last packet: %v", i, err)
			}
			if got > 20 && buffer[18] == 0xab && buffer[19] == 0xcd {
				break
			}
			seen++
		}
		seen += flush(host6)
		pass, hide := decide(frame)
		if got := flush(int(s.Packet.Fd())); (got == 1) != pass {
			t.Errorf("frame %d: the stack got %d, expected it: %v\n% x", i, got, pass, frame)
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
