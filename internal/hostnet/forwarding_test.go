// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/nettest"
)

// What a stack sends reaches a server under the host's address, and the answer
// finds its way back. The host was no router before, and is none between its
// other networks now:
//
//	tap (this test plays the stack) - host - out|in - server
//	                                     \ - up0|in - other
func TestHostForwardsAndTranslatesForTheStack(t *testing.T) {
	host(t)
	server, other := neighbour(t, "server"), neighbour(t, "other")
	nettest.Run(t, "ip", "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", server)
	nettest.Run(t, "ip", "address", "add", "198.51.100.1/24", "dev", "out")
	nettest.Run(t, "ip", "address", "add", "2001:db8:5::1/64", "dev", "out", "nodad")
	nettest.Run(t, "ip", "link", "set", "out", "up")
	nettest.Run(t, "ip", "-n", server, "address", "add", "198.51.100.2/24", "dev", "in")
	nettest.Run(t, "ip", "-n", server, "address", "add", "2001:db8:5::2/64", "dev", "in", "nodad")
	nettest.Run(t, "ip", "-n", server, "link", "set", "in", "up")
	nettest.Run(t, "ip", "link", "add", "port", "master", "up0", "type", "veth", "peer", "name", "in", "netns", other)
	nettest.Run(t, "ip", "link", "set", "port", "up")
	nettest.Run(t, "ip", "-n", other, "address", "add", "192.0.2.99/24", "dev", "in")
	nettest.Run(t, "ip", "-n", other, "link", "set", "in", "up")

	h, links := prepare(t, "tap")
	defer h.Undo()
	tap := h.Links[0]
	device, err := netlink.LinkByName("guise0")
	if err != nil {
		t.Fatal(err)
	}
	// The server has no route but to its own network: only translated packets
	// can be answered.
	for i, address := range []string{"198.51.100.2", "2001:db8:5::2"} {
		stack := links[0].Addresses[i].Addr()
		nettest.Run(t, "ip", "neighbour", "replace", stack.String(), "lladdr", "02:00:00:00:00:02", "dev", "guise0", "nud", "permanent")
		echo := echoRequest(device.Attrs().HardwareAddr, stack, netip.MustParseAddr(address))
		if !answered(t, tap, echo, netip.MustParseAddr(address), stack) {
			t.Errorf("no answer from %s", address)
		}
	}

	nettest.Run(t, "ip", "-n", server, "route", "add", "default", "via", "198.51.100.1")
	nettest.Run(t, "ip", "-n", other, "route", "add", "default", "via", "192.0.2.7")
	ping := func(words ...string) error {
		return exec.Command("ip", slices.Concat([]string{"netns", "exec", server, "ping", "-i0.2", "192.0.2.99"}, words)...).Run()
	}
	if ping("-c3", "-W1") == nil {
		t.Error("the host has become a router between its own networks")
	}
	nettest.Run(t, "nft", "flush", "chain", "ip", "guise_test", "forward")
	if err := ping("-c1", "-w20"); err != nil {
		t.Errorf("it was not guise's rule that kept it from that: %v", err)
	}
}

// neighbour makes a network namespace with a name, for the time of the test.
func neighbour(t *testing.T, what string) string {
	t.Helper()
	name := fmt.Sprintf("guise-test-%d-%s", os.Getpid(), what)
	nettest.Run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", name).Run() })
	return name
}

// answered sends the frame until the answer to it arrives.
func answered(t *testing.T, tap *os.File, frame []byte, from, to netip.Addr) bool {
	t.Helper()
	fd := int(tap.Fd())
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if _, err := unix.Write(fd, frame); err != nil {
			t.Fatal(err)
		}
		for {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, _ := unix.Poll(poll, 200); n < 1 {
				break
			}
			buffer := make([]byte, 2048)
			n, err := unix.Read(fd, buffer)
			if err != nil {
				t.Fatal(err)
			}
			if isReply(buffer[:n], from, to) {
				return true
			}
		}
	}
	return false
}

const (
	headerSize   = 10 // struct virtio_net_hdr, as a tap has it unless told otherwise
	ethernetSize = 14
)

func echoRequest(router []byte, from, to netip.Addr) []byte {
	frame := make([]byte, headerSize)
	frame = append(frame, router...)
	frame = append(frame, 2, 0, 0, 0, 0, 2)
	message := []byte{8, 0, 0, 0, 0, 1, 0, 1, 'g', 'u', 'i', 's', 'e', '!'}
	if from.Is6() {
		message[0] = 128
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(message)), 58, 64)
		frame = append(append(frame, from.AsSlice()...), to.AsSlice()...)
		pseudo := append(append([]byte{}, from.AsSlice()...), to.AsSlice()...)
		pseudo = append(pseudo, 0, 0, 0, byte(len(message)), 0, 0, 0, 58)
		binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
		return append(frame, message...)
	}
	ip := []byte{0x45, 0, 0, byte(20 + len(message)), 0, 1, 0, 0, 64, 1, 0, 0}
	ip = append(append(ip, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	return append(append(append(frame, 8, 0), ip...), message...)
}

func checksum(data []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func isReply(frame []byte, from, to netip.Addr) bool {
	packet := frame[headerSize+ethernetSize:]
	reply, source, length, header := byte(0), 12, 4, 20
	if from.Is6() {
		reply, source, length, header = 129, 8, 16, 40
	}
	if len(packet) < header+1 || packet[header] != reply {
		return false
	}
	return string(packet[source:source+length]) == string(from.AsSlice()) &&
		string(packet[source+length:source+2*length]) == string(to.AsSlice())
}
