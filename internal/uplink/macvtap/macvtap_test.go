// SPDX-License-Identifier: GPL-2.0-only

package macvtap

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/netns"
	"guise/internal/nettest"
)

const patience = 10 * time.Second

// Each test has a namespace of its own with a cable: up0 is the host's interface, far0 the other end.
func cable(t *testing.T) {
	t.Helper()
	t.Parallel()
	nettest.Namespace(t)
	nettest.Run(t, "ip", "link", "add", "up0", "type", "veth", "peer", "name", "far0")
	nettest.Run(t, "ip", "link", "set", "up0", "up")
	nettest.Run(t, "ip", "link", "set", "far0", "up")
}

func opened(t *testing.T, mac net.HardwareAddr) *Device {
	t.Helper()
	d, err := Open("up0", mac)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// listener is a packet socket on far0.
func listener(t *testing.T) int {
	t.Helper()
	far, err := netlink.LinkByName("far0")
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err == nil {
		t.Cleanup(func() { unix.Close(fd) })
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: far.Attrs().Index})
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// found reads from fd until a frame ends with the text.
func found(t *testing.T, fd int, text string) []byte {
	t.Helper()
	buffer := make([]byte, 2048)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(poll, 100); n == 0 {
			continue
		}
		if n, err := unix.Read(fd, buffer); err == nil && bytes.HasSuffix(buffer[:n], []byte(text)) {
			return buffer[:n]
		}
	}
	t.Fatalf("no frame with %q came", text)
	return nil
}

// What lib/link/tap.c does with the descriptor is done with it here.
func TestTheDescriptorIsATapBesideTheInterface(t *testing.T) {
	cable(t)
	mac := net.HardwareAddr{2, 1, 2, 3, 4, 5}
	d := opened(t, mac)
	if d.Kind != Macvtap || d.MAC.String() != mac.String() || d.MTU != 1500 || d.LinkLocal != netip.MustParseAddr("fe80::1:2ff:fe03:405") {
		t.Errorf("got %+v", d)
	}
	fd := int(d.Tap.Fd())
	request, _ := unix.NewIfreq("")
	const flags = unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR
	if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, request); err != nil || request.Uint16()&flags != flags {
		t.Errorf("TUNGETIFF: %#x, %v", request.Uint16(), err)
	}
	const header = 12
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, header); err != nil {
		t.Errorf("TUNSETVNETHDRSZ: %v", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6|unix.TUN_F_TSO_ECN); err != nil {
		t.Errorf("TUNSETOFFLOAD: %v", err)
	}
	far := listener(t)
	frame := bytes.Join([][]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, {0x88, 0xb5}, make([]byte, 60), []byte("from the stack")}, nil)
	if _, err := unix.Write(fd, append(make([]byte, header), frame...)); err != nil {
		t.Fatal(err)
	}
	if got := found(t, far, "from the stack"); !bytes.Equal(got, frame) {
		t.Errorf("sent %x, got %x", frame, got)
	}
	copy(frame, mac)
	copy(frame[6:], []byte{2, 9, 9, 9, 9, 9})
	frame = append(frame[:74], "to the stack!!"...)
	link, _ := netlink.LinkByName("far0")
	if err := unix.Sendto(far, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index}); err != nil {
		t.Fatal(err)
	}
	if got := found(t, fd, "to the stack!!"); !bytes.Equal(got[header:], frame) {
		t.Errorf("sent %x, got %x", frame, got[header:])
	}
}

func TestTheHostSendsNothingFromTheDevice(t *testing.T) {
	cable(t)
	far := listener(t)
	d := opened(t, net.HardwareAddr{2, 1, 2, 3, 4, 5})
	err := netns.Run(d.Namespace, func() error {
		link, err := netlink.LinkByName(d.Name)
		if err != nil {
			return err
		}
		if addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL); err != nil || len(addresses) != 0 {
			t.Errorf("it has addresses: %v, %v", addresses, err)
		}
		if _, err := os.Stat("/dev/" + d.Name); err == nil {
			t.Error("there is a node with its name")
		}
		// One of its own is the last frame from it; what came before is judged.
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		mark := append(bytes.Repeat([]byte{0xff}, 6), append(bytes.Clone(d.MAC), "\x88\xb5mark"...)...)
		return unix.Sendto(fd, mark, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2048)
	for {
		n, err := unix.Read(far, buffer)
		if err != nil {
			t.Fatal(err)
		}
		if frame := buffer[:n]; n > 14 && bytes.Equal(frame[6:12], d.MAC) {
			if bytes.HasSuffix(frame, []byte("mark")) {
				return
			}
			t.Errorf("it sent a frame of type %#x: %x", binary.BigEndian.Uint16(frame[12:]), frame)
		}
	}
}

// A bridge takes an interface only when nothing is beside it.
func TestTheDeviceIsGoneWithTheLastDescriptor(t *testing.T) {
	cable(t)
	d := opened(t, nil)
	second := opened(t, nil)
	if d.Index != second.Index || d.MAC.String() == second.MAC.String() {
		t.Errorf("two devices beside one interface: %+v and %+v", d, second)
	}
	nettest.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	join := func() error { return exec.Command("ip", "link", "set", "up0", "master", "br0").Run() }
	second.Close()
	// The stack's copy, after the process that made the device is gone.
	stack, err := unix.Dup(int(d.Tap.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if join() == nil {
		t.Error("it is gone although its descriptor is open")
	}
	unix.Close(stack)
	for end := time.Now().Add(patience); join() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is still there")
		}
	}
}

func TestADescriptorWhoseInterfaceWentSaysSo(t *testing.T) {
	cable(t)
	d := opened(t, nil)
	nettest.Run(t, "ip", "link", "del", "up0")
	request, _ := unix.NewIfreq("")
	if err := unix.IoctlIfreq(int(d.Tap.Fd()), unix.TUNGETIFF, request); err != unix.ENOLINK {
		t.Errorf("expected ENOLINK: %v", err)
	}
}

func TestAnInterfaceThatCanHaveNoneBesideItIsRefused(t *testing.T) {
	cable(t)
	nettest.Run(t, "ip", "link", "add", "down0", "type", "veth", "peer", "name", "down1")
	nettest.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	nettest.Run(t, "ip", "link", "set", "down1", "up", "master", "br0")
	nettest.Run(t, "ip", "link", "add", "link", "up0", "name", "pass0", "type", "macvlan", "mode", "passthru")
	nettest.Run(t, "ip", "tuntap", "add", "raw0", "mode", "tun")
	for name, want := range map[string][]string{
		"up1":       {"there is no interface up1", "did you mean up0?"},
		"up\x1b[2J": {`"up\x1b[2J"`},
		"":          {"there is no interface"},
		"lo":        {"lo is the loopback"},
		"down0":     {"down0 is down", "ip link set down0 up"},
		"down1":     {"a port of the bridge br0", "name br0"},
		"raw0":      {"raw0 is no Ethernet interface", "share the address"},
		"up0":       {"something else takes its frames", "macvlan pass0"},
	} {
		d, err := Open(name, nil)
		if err == nil {
			d.Close()
			t.Errorf("%s: taken", name)
			continue
		}
		for _, word := range want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: expected %q: %v", name, word, err)
			}
		}
	}
}

// No machine of the tests has a Wi-Fi: a refusal is given to what comes after looking at one.
func TestAStationGetsAnIPvtapOrIsRefusedWithTheReason(t *testing.T) {
	cable(t)
	for kind := range uint32(unix.NL80211_IFTYPE_MAX + 2) {
		want := kind == unix.NL80211_IFTYPE_AP || kind == unix.NL80211_IFTYPE_AP_VLAN || kind == unix.NL80211_IFTYPE_P2P_GO
		if takesMACs(kind) != want {
			t.Errorf("type %d: %v", kind, !want)
		}
	}
	if kind := wirelessType(1); takesMACs(kind) {
		t.Errorf("lo is of type %d", kind)
	}
	up, err := netlink.LinkByName("up0")
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := newNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	d := &Device{Name: name, Namespace: namespace}
	err = d.add(&parent{name: "up0", index: up.Attrs().Index, refusal: os.ErrPermission}, nil)
	if err != nil {
		for _, word := range []string{os.ErrPermission.Error(), "no ipvtap", "share the address of up0"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("expected %q: %v", word, err)
			}
		}
		return
	}
	if err := netns.Run(namespace, d.bringUp); err != nil {
		t.Fatal(err)
	}
	defer d.Tap.Close()
	if d.Kind != IPvtap || d.MAC.String() != up.Attrs().HardwareAddr.String() || !d.LinkLocal.IsLinkLocalUnicast() {
		t.Errorf("got %+v", d)
	}
	for _, addresses := range [][]netip.Addr{
		{netip.MustParseAddr("192.0.2.1"), d.LinkLocal},
		{netip.MustParseAddr("2001:db8::1"), d.LinkLocal},
	} {
		if err := d.SetAddresses(addresses); err != nil {
			t.Error(err)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"246:1\n", "4095:1048575", ":", "1", "-1:2", "4096:0", "1:1048576", "1:2:3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := parseNumber(text)
		if err == nil && (unix.Major(number) > 4095 || unix.Minor(number) > 1<<20-1) {
			t.Errorf("%q is %d:%d", text, unix.Major(number), unix.Minor(number))
		}
	})
}
