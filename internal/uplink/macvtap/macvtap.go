// SPDX-License-Identifier: GPL-2.0-only

// Package macvtap gives a stack an interface of its own beside one of the host's: with its own MAC
// address (macvtap, mode bridge) or, where the network takes no second one, with the host's and its
// own IP addresses (ipvtap, mode l2). The stack gets a descriptor that is like that of a tap.
//
// How: the device is made in a network namespace that guise makes for it alone, while its frames
// pass over the host's interface. So nothing of the host sees it: the host's kernel gives it no
// address and sends no packet from it, and no network manager configures it. The namespace has no
// name and no process. What keeps it is the descriptor of the tap, because that is opened in it
// (the kernel's tap holds the namespace of the thread that opens it). So the device is gone with the
// last copy of the descriptor, by kill -9 too, as that of a tap is, and no journal has to name it.
// Device.Namespace and sockets in it (package lease has two) keep it as well. When the host's
// interface goes, the device goes with it: no frame comes any more, those sent are lost, and
// TUNGETIFF fails with ENOLINK.
//
// The character device is found by its number, not by its name: /dev/tapN is named for the
// interface's index, which is the same in many namespaces, and containers have no such node. The
// number is read from a sysfs of the device's own namespace, and the node is made in a tmpfs; both
// are mounted in a mount namespace of one thread, which ends when the device is open (node.go).
//
// Limits: it takes CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_MKNOD in the host's first user namespace.
// The stack and the host itself do not reach each other over the device: the kernel passes frames
// between the devices beside an interface and to the wire, but not to the interface itself.
// With ipvtap the kernel sorts packets by address, so it must be told each address of the stack
// (SetAddresses); two neighbours must not have the same link-local address, so the stack must take
// that of Device.LinkLocal.
package macvtap

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/netns"
	"guise/internal/hostnet/tap"
)

// Kinds of devices.
const (
	Macvtap = "macvtap"
	IPvtap  = "ipvtap"
)

// name is that of the device in its namespace, where it has no neighbour but lo.
const name = tap.Prefix + "0"

// Device is an interface of a stack beside one of the host's.
type Device struct {
	Kind      string           // Macvtap or IPvtap
	Name      string           // in Namespace
	Index     int              // in Namespace
	MAC       net.HardwareAddr // of the stack; with ipvtap it is the host's as well
	MTU       int
	LinkLocal netip.Addr // which the stack is to have
	Tap       *os.File   // for the link tap:fd=N
	Namespace *os.File   // where the device is
}

// Open makes a device beside an interface of the calling thread's network namespace. mac is the
// MAC address it gets; with nil the kernel chooses one.
func Open(parent string, mac net.HardwareAddr) (*Device, error) {
	if err := mayOpen(parent); err != nil {
		return nil, err
	}
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("cannot open this thread's network namespace: %w", err)
	}
	defer here.Close()
	p, err := look(here, parent)
	if err != nil {
		return nil, err
	}
	namespace, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("cannot make a network namespace for the device beside %s: %w", parent, err)
	}
	d := &Device{Name: name, Namespace: namespace}
	if err = d.add(p, mac); err == nil {
		err = netns.Run(namespace, d.bringUp)
	}
	if err != nil {
		namespace.Close()
		return nil, err
	}
	return d, nil
}

// Close closes both descriptors. The device is gone when no copy of them is left.
func (d *Device) Close() error { return errors.Join(d.Tap.Close(), d.Namespace.Close()) }

func mayOpen(parent string) error {
	for number, word := range map[int]string{unix.CAP_NET_ADMIN: "CAP_NET_ADMIN", unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_MKNOD: "CAP_MKNOD"} {
		if !access.Capability(number) {
			return access.Refuse("to make an interface beside %s takes %s, which you do not have; use sudo, or let the stack share the address of %s",
				parent, word, parent)
		}
	}
	return nil
}

func newNamespace() (*os.File, error) {
	var file *os.File
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		result <- err
	}()
	return file, <-result
}

// add makes the device: a macvtap, or an ipvtap where the parent takes no macvtap.
func (d *Device) add(p *parent, mac net.HardwareAddr) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.ParentIndex, attributes.Namespace = name, p.index, netlink.NsFd(d.Namespace.Fd())
	reason := p.refusal
	if reason == nil {
		own := attributes
		own.HardwareAddr = mac
		err := netlink.LinkAdd(&netlink.Macvtap{Macvlan: netlink.Macvlan{LinkAttrs: own, Mode: netlink.MACVLAN_MODE_BRIDGE}})
		if err == nil {
			d.Kind = Macvtap
			return nil
		}
		reason = p.explain(Macvtap, err)
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EOPNOTSUPP) {
			return reason
		}
	}
	err := netlink.LinkAdd(&netlink.IPVtap{IPVlan: netlink.IPVlan{LinkAttrs: attributes, Mode: netlink.IPVLAN_MODE_L2}})
	if err != nil {
		return access.Refuse("%w; and no ipvtap can be had in its place: %w; let the stack share the address of %s instead",
			reason, p.explain(IPvtap, err), p.name)
	}
	d.Kind = IPvtap
	return nil
}

// bringUp runs in the device's namespace.
func (d *Device) bringUp() error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("cannot find the new %s: %w", d.Kind, err)
	}
	// The addresses are the stack's. Without this the host's kernel would send from the device too.
	const none = 1 // IN6_ADDR_GEN_MODE_NONE
	if err := netlink.LinkSetIP6AddrGenMode(link, none); err != nil && hasIPv6() {
		return fmt.Errorf("cannot keep the host's kernel from having an address on the %s: %w", d.Kind, err)
	}
	// The host's kernel does not know which groups the stack is in: without this no neighbour's question
	// for its IPv6 addresses would come.
	if err := netlink.LinkSetAllmulticastOn(link); err != nil {
		return fmt.Errorf("cannot have the %s hear all groups: %w", d.Kind, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("cannot bring the %s up: %w", d.Kind, err)
	}
	a := link.Attrs()
	d.Index, d.MAC, d.MTU = a.Index, a.HardwareAddr, a.MTU
	d.LinkLocal, err = linkLocal(d.Kind, a.HardwareAddr)
	if err != nil {
		return err
	}
	d.Tap, err = openNode(name, d.Index)
	return err
}

func hasIPv6() bool {
	_, err := os.Stat("/proc/thread-self/net/if_inet6")
	return err == nil
}

// linkLocal is the address that a kernel gives an interface with that MAC address, and for ipvtap
// a random one: the host's interface has the same MAC address, and so that address already.
func linkLocal(kind string, mac net.HardwareAddr) (netip.Addr, error) {
	if len(mac) != 6 {
		return netip.Addr{}, fmt.Errorf("the %s has the MAC address %q, expected one of 6 bytes", kind, mac)
	}
	a := [16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]}
	if kind == IPvtap {
		rand.Read(a[8:])
		a[8] &^= 3
	}
	return netip.AddrFrom16(a), nil
}

// SetAddresses tells an ipvtap's kernel which addresses the stack has; a macvtap needs no such
// thing. It may be called again with others.
func (d *Device) SetAddresses(addresses []netip.Addr) error {
	if d.Kind != IPvtap {
		return nil
	}
	return netns.Run(d.Namespace, func() error { return setAddresses(d.Index, addresses) })
}

func setAddresses(index int, addresses []netip.Addr) error {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return fmt.Errorf("the ipvtap is gone: %w", err)
	}
	present, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("cannot list the addresses of the ipvtap: %w", err)
	}
	var have []netip.Addr
	for _, p := range present {
		a, _ := netip.AddrFromSlice(p.IP)
		a = a.Unmap()
		if have = append(have, a); slices.Contains(addresses, a) {
			continue
		}
		if err := netlink.AddrDel(link, &p); err != nil {
			return fmt.Errorf("cannot take %s from the ipvtap: %w", a, err)
		}
	}
	for _, a := range addresses {
		if slices.Contains(have, a) {
			continue
		}
		if err := tap.AddAddress(link, netip.PrefixFrom(a, a.BitLen())); err != nil {
			return err
		}
	}
	return nil
}
