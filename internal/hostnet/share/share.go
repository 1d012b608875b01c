// SPDX-License-Identifier: GPL-2.0-only

// Package share makes it safe that a stack uses an interface of the host, with the host's own
// address or alone.
//
// With one address, ports say whose a packet is (Reserve). The stack's packet socket receives only
// what is the stack's (filter.go), and the host does not see that (table.go), so that it neither
// answers it nor does the work twice. What the host sends and receives otherwise is not touched: it
// alone answers for the address to its neighbours, and follows what DHCP and routers say.
//
//	interface ──► packet sockets: the stack's, with its filter ──► the stack
//	          └─► the chain of the stack's table: hides the same packets
//	              └─► the host's firewall and stack: everything else
//
// Limits. A program of the stack that binds another port receives nothing over the interface;
// within the stack, it is reached. That is why bind() does not refuse it. Multicast and broadcast
// go to the host alone. A member can send whatever it likes, on any interface of the host: it has the
// socket, and the kernel asks for no right beyond that. For users without rights there is the tap (tap.go).
package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
)

var bigEndian = binary.BigEndian

// Request says what a stack shares.
type Request struct {
	Interface string
	// Exclusive: the stack has all packets of the interface, and any port. Otherwise Addresses are
	// those that it shares, and Ports its ports.
	Exclusive bool
	Addresses []netip.Addr
	Ports     Ports
	// MAC is the stack's own, with Exclusive; nil: the interface's.
	MAC net.HardwareAddr
}

// Shared is an interface that a stack shares with the host.
type Shared struct {
	// Packet is the socket for a link packet:fd=N. Its filter is locked.
	Packet *os.File
	// Keep must stay open in a process that lives as long as the stack: with its last copy the
	// host sees all packets again.
	Keep []*os.File
	// Ports are the stack's; all, if Exclusive.
	Ports Ports
	// Raw: packets have no Ethernet header.
	Raw bool

	sides
}

// sides are what decides, on both sides, which packets are the stack's.
type sides struct {
	addresses []netip.Addr
	filter    *filter // nil: all
	table     *table
}

// raw has the types of interfaces whose packets have no link-layer header, as lib/link/packet.c.
var raw = []string{"none", "ppp", "rawip", "tunnel", "tunnel6", "sit"}

// find finds an interface of the host.
func find(device string) (netlink.Link, error) {
	link, err := netlink.LinkByName(device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, access.Refuse("there is no interface %s on the host", device)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for %s: %w", device, err)
	}
	return link, nil
}

// isRaw reports whether packets of the interface have no link-layer header. One that a stack cannot use is
// an error.
func isRaw(link netlink.Link, device string) (bool, error) {
	is := link.Attrs().EncapType
	if is != "ether" && !slices.Contains(raw, is) {
		return false, access.Refuse("%s is of type %s and cannot be used by a stack; expected Ethernet, or an interface without "+
			"link-layer headers", device, is)
	}
	return is != "ether", nil
}

// Open opens an interface for a stack. From then on the host does not see the stack's packets.
// The journal gets what the kernel does not undo itself.
func Open(r Request, j Journal) (*Shared, error) {
	link, err := find(r.Interface)
	if err != nil {
		return nil, err
	}
	s := &Shared{Ports: r.Ports}
	if s.Raw, err = isRaw(link, r.Interface); err != nil {
		return nil, err
	}
	if !r.Exclusive && len(r.Addresses) == 0 {
		return nil, access.Refuse("%s has no address to share", r.Interface)
	}
	if err := s.open(link, r, j); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open hides the packets from the host before the stack receives any.
func (s *Shared) open(link netlink.Link, r Request, j Journal) error {
	if err := CheckOthers(r.Interface, r.Exclusive); err != nil {
		return err
	}
	if err := s.openSocket(link.Attrs().Index, r); err != nil {
		return err
	}
	if err := s.openTable(link, r, j); err != nil {
		return err
	}
	if r.Exclusive {
		s.Ports = above(0)
	} else if err := s.SetAddresses(r.Addresses); err != nil {
		return err
	}
	return s.bind(link.Attrs().Index)
}

// openSocket makes the socket with its filter. It receives nothing yet.
func (s *Shared) openSocket(ifindex int, r Request) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) {
		return access.Refuse("to use the host's interface %s takes CAP_NET_RAW, which you do not have; use sudo", r.Interface)
	}
	if err != nil {
		return fmt.Errorf("the host has no packet sockets (CONFIG_PACKET): %w", err)
	}
	s.Packet = os.NewFile(uintptr(fd), "packet "+r.Interface)
	// As lib/link/packet.c, which may run with fewer rights; without these, less room is no error.
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<20)
	const ignoreOutgoing = 23 // PACKET_IGNORE_OUTGOING, Linux 4.20; the filters do it as well
	unix.SetsockoptInt(fd, unix.SOL_PACKET, ignoreOutgoing, 1)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return os.NewSyscallError("PACKET_VNET_HDR", err)
	}
	if r.Exclusive {
		return attachAll(fd, ifindex, r.MAC)
	}
	if s.filter, err = newFilter(ifindex); err != nil {
		return err
	}
	if err := s.filter.setPorts(r.Ports); err != nil {
		return err
	}
	return s.filter.attach(fd)
}

// attachAll has the socket receive all of the interface, except frames of a VLAN.
func attachAll(fd, ifindex int, mac net.HardwareAddr) error {
	const extension, index, kind, vlan = 0xfffff000, 8, 4, 48 // SKF_AD_...
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: extension + index},
		{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 5, K: uint32(ifindex)},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: extension + kind},
		{Code: unix.BPF_JMP | unix.BPF_JEQ, Jt: 3, K: unix.PACKET_OUTGOING},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: extension + vlan},
		{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 1, K: 0},
		{Code: unix.BPF_RET, K: 1<<32 - 1},
		{Code: unix.BPF_RET, K: 0},
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}); err != nil {
		return os.NewSyscallError("attach the filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1); err != nil {
		return os.NewSyscallError("lock the filter", err)
	}
	// Groups that only the stack is in, and its address: an interface may leave the rest out.
	groups := unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_ALLMULTI}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &groups); err != nil || mac == nil {
		return os.NewSyscallError("PACKET_ADD_MEMBERSHIP", err)
	}
	own := unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_UNICAST, Alen: 6}
	copy(own.Address[:], mac)
	return os.NewSyscallError("PACKET_ADD_MEMBERSHIP", unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &own))
}

func (s *Shared) openTable(link netlink.Link, r Request, j Journal) error {
	name := j.Table() + "_" + r.Interface
	var err error
	if s.table, err = newTable(name); err != nil {
		return err
	}
	if !s.table.owned {
		if err := j.Note(journal.Step{Kind: journal.Table, Family: "netdev", Name: name}); err != nil {
			return err
		}
	}
	if err := s.table.addChain(chain{device: r.Interface, ethernet: !s.Raw, exclusive: r.Exclusive, ports: r.Ports}); err != nil {
		return err
	}
	if !s.table.owned {
		return nil
	}
	keep, err := s.table.keep()
	if err == nil {
		s.Keep = append(s.Keep, keep)
	}
	return err
}

// bind begins to receive.
func (s *Shared) bind(ifindex int) error {
	protocol := uint16(be(unix.ETH_P_ALL))
	return os.NewSyscallError("bind a packet socket", unix.Bind(int(s.Packet.Fd()), &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: ifindex}))
}

// SetAddresses replaces the addresses that are shared. Those that stay are shared all the time;
// there may be none.
func (s *sides) SetAddresses(addresses []netip.Addr) error {
	if s.filter == nil {
		return nil
	}
	next := slices.Clone(addresses)
	for i, a := range next {
		next[i] = a.Unmap().WithZone("")
	}
	slices.SortFunc(next, netip.Addr.Compare)
	next = slices.Compact(next)
	if len(next) > mostAddresses {
		return fmt.Errorf("%d addresses are too many to share on one interface; a stack shares %d", len(next), mostAddresses)
	}
	lacks := func(list []netip.Addr) func(netip.Addr) bool {
		return func(a netip.Addr) bool { return slices.Contains(list, a) }
	}
	add := slices.DeleteFunc(slices.Clone(next), lacks(s.addresses))
	remove := slices.DeleteFunc(slices.Clone(s.addresses), lacks(next))
	// The host must never see what the stack receives: it would answer.
	if err := errors.Join(s.filter.change(nil, remove), s.table.change(add, remove), s.filter.change(add, nil)); err != nil {
		return err
	}
	s.addresses = next
	return nil
}

// Close gives the interface back, unless others have copies of what is in s.
func (s *Shared) Close() error {
	var failed []error
	if s.Packet != nil {
		failed = append(failed, s.Packet.Close())
	}
	for _, file := range s.Keep {
		failed = append(failed, file.Close())
	}
	if s.filter != nil {
		s.filter.close()
	}
	if s.table != nil {
		failed = append(failed, s.table.close())
	}
	return errors.Join(failed...)
}
