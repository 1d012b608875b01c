// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// The filter decides which packets of an interface a stack receives that shares the host's
// addresses. It is attached to the stack's packet socket and locked there: members have the
// socket, and must not see what else the host receives.
//
// It is eBPF, not classic BPF, because of the lock: not even guise can replace a locked filter,
// and the addresses of an interface change while a stack runs. They and the ports are in maps,
// whose descriptors members do not have.
//
// What passes, of frames that came in on the interface and have no VLAN tag:
//
//	IPv4 and IPv6 to a shared address, as a packet for this host
//		TCP, UDP       with a destination port of the stack
//		ICMP, ICMPv6   echo replies, whose id is a port of the stack;
//		               errors about a packet whose source port, or id of an echo
//		               request, is a port of the stack
//		fragments      all but the first: they have no ports. The stack forgets those
//		               that are the host's, as their first one never comes.
//	ARP replies to a shared address, and IPv6 neighbour advertisements: the stack finds
//	neighbours itself, and the host alone answers for the addresses.
//
// IPv4 options are skipped, and up to six extension headers of IPv6 (hop-by-hop and destination
// options, routing, fragment). An error about a packet that has such does not pass, nor does what
// is authenticated by IPsec, nor multicast.
//
// table.go hides the same packets from the host, except fragments, ARP and advertisements.
// The test decides in plain Go and compares all three.

// filter has the maps of a filter.
type filter struct {
	addresses, ports *ebpf.Map
	program          *ebpf.Program
	guard            *guard // of what a stack sends (sender.go)
}

// mostAddresses is how many a stack can share on one interface.
const mostAddresses = 64

// newFilter makes the filter for an interface.
func newFilter(ifindex int) (*filter, error) {
	return newProgram(func(f *filter) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "guise_share", Type: ebpf.SocketFilter, License: "GPL", Instructions: instructions(ifindex, f.addresses, f.ports)}
	})
}

// newProgram makes the maps, and a program with them.
func newProgram(program func(*filter) *ebpf.ProgramSpec) (*filter, error) {
	f := &filter{}
	var err error
	f.addresses, err = ebpf.NewMap(&ebpf.MapSpec{Name: "guise_addresses", Type: ebpf.Hash, KeySize: 16, ValueSize: 4, MaxEntries: mostAddresses})
	if err != nil {
		return nil, explainBPF(err)
	}
	f.ports, err = ebpf.NewMap(&ebpf.MapSpec{Name: "guise_ports", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1 << 16 / 32})
	if err == nil {
		f.program, err = ebpf.NewProgram(program(f))
	}
	if err != nil {
		f.close()
		return nil, explainBPF(err)
	}
	return f, nil
}

func explainBPF(err error) error {
	return fmt.Errorf("the host's kernel refuses the filter that keeps its other packets from the stack (it takes CAP_BPF, "+
		"or CAP_SYS_ADMIN before Linux 5.8, and CONFIG_BPF_SYSCALL): %w", err)
}

func (f *filter) close() {
	f.addresses.Close()
	f.ports.Close()
	f.program.Close()
	if f.guard != nil {
		f.guard.close()
	}
}

// attach gives the socket the filter, for ever.
func (f *filter) attach(socket int) error {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, f.program.FD()); err != nil {
		return os.NewSyscallError("attach the filter", err)
	}
	return os.NewSyscallError("lock the filter", unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1))
}

// setPorts replaces the ports.
func (f *filter) setPorts(p Ports) error {
	for word := range uint32(1 << 16 / 32) {
		var bits uint32
		for bit := range uint32(32) {
			if p.Contains(uint16(word*32 + bit)) {
				bits |= 1 << bit
			}
		}
		if err := f.ports.Put(word, bits); err != nil {
			return fmt.Errorf("cannot give the filter its ports: %w", err)
		}
	}
	return nil
}

// change adds and removes addresses.
func (f *filter) change(add, remove []netip.Addr) error {
	for _, a := range add {
		if err := f.addresses.Put(a.As16(), uint32(1)); err != nil {
			return fmt.Errorf("cannot give the filter the address %s: %w", a, err)
		}
	}
	for _, a := range remove {
		if err := f.addresses.Delete(a.As16()); err != nil {
			return fmt.Errorf("cannot take the address %s from the filter: %w", a, err)
		}
	}
	return nil
}

// Where the program has things: in registers, and on its stack, below R10.
const (
	context   = asm.R6
	transport = asm.R7 // where the next header begins, from the IP header
	protocol  = asm.R8
	number    = asm.R9 // a port or id, as it is in the packet

	mapKey  = -8
	address = -24 // 16 bytes: the destination
	header  = -72 // up to 48 bytes that were read

	// Of struct __sk_buff.
	skbPacketType  = 4
	skbProtocol    = 16
	skbVLANPresent = 20
	skbIfindex     = 40
)

// extensions is how many extension headers of IPv6 are skipped.
const extensions = 6

type assembler struct{ list asm.Instructions }

func (a *assembler) add(i ...asm.Instruction) { a.list = append(a.list, i...) }

// at adds instructions of which the first has that label.
func (a *assembler) at(label string, i ...asm.Instruction) {
	i[0] = i[0].WithSymbol(label)
	a.add(i...)
}

// read reads bytes of the packet, from the transport register and offset on, to header.
func (a *assembler) read(offset, size int32) {
	const fromNetwork = 1 // BPF_HDR_START_NET
	a.readFrom(fromNetwork, offset, size)
}

func (a *assembler) readFrom(start, offset, size int32) {
	a.add(
		asm.Mov.Reg(asm.R1, context),
		asm.Mov.Reg(asm.R2, transport),
		asm.Add.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, header),
		asm.Mov.Imm(asm.R4, size),
		asm.Mov.Imm(asm.R5, start),
		asm.FnSkbLoadBytesRelative.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
	)
}

// of loads a part of what was read.
func (a *assembler) of(to asm.Register, offset int16, size asm.Size) {
	a.add(asm.LoadMem(to, asm.R10, header+offset, size))
}

// big loads two bytes as a number.
func (a *assembler) big(to asm.Register, offset int16) {
	a.of(to, offset, asm.Half)
	a.add(asm.HostTo(asm.BE, to, asm.Half))
}

// destination copies the address of what was read; IPv4's becomes ::ffff:A.B.C.D.
func (a *assembler) destination(offset int16, four bool) {
	if four {
		a.of(asm.R1, offset, asm.Word)
		a.add(
			asm.StoreMem(asm.R10, address+12, asm.R1, asm.Word),
			asm.StoreImm(asm.R10, address, 0, asm.Word),
			asm.StoreImm(asm.R10, address+4, 0, asm.Word),
			asm.StoreImm(asm.R10, address+8, 0, asm.Half),
			asm.StoreImm(asm.R10, address+10, -1, asm.Half),
		)
		return
	}
	for i := int16(0); i < 16; i += 4 {
		a.of(asm.R1, offset+i, asm.Word)
		a.add(asm.StoreMem(asm.R10, address+i, asm.R1, asm.Word))
	}
}

// shared drops the packet unless the address is in the map.
func (a *assembler) shared(addresses *ebpf.Map) {
	a.add(
		asm.LoadMapPtr(asm.R1, addresses.FD()),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, address),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
	)
}

// toHost drops a packet that is for many, or for another host.
func (a *assembler) toHost() {
	a.add(
		asm.LoadMem(asm.R1, context, skbPacketType, asm.Word),
		asm.JNE.Imm(asm.R1, unix.PACKET_HOST, "drop"),
	)
}

// inner is how to look into the packet that an ICMP error is about.
type inner struct {
	header    int32 // bytes of its IP header
	protocol  int16 // where that says what follows
	ping      int32 // the protocol of an echo request, ...
	echo      int32 // ... and its type
	notWhole  func(a *assembler)
	firstByte func(a *assembler)
}

var inner4 = inner{header: 20, protocol: 9, ping: unix.IPPROTO_ICMP, echo: 8,
	firstByte: func(a *assembler) { a.add(asm.JNE.Imm(asm.R1, 0x45, "drop")) },
	notWhole: func(a *assembler) {
		a.big(asm.R1, 6)
		a.add(asm.And.Imm(asm.R1, 0x1fff), asm.JNE.Imm(asm.R1, 0, "drop"))
	}}

var inner6 = inner{header: 40, protocol: 6, ping: unix.IPPROTO_ICMPV6, echo: 128,
	firstByte: func(a *assembler) { a.add(asm.RSh.Imm(asm.R1, 4), asm.JNE.Imm(asm.R1, 6, "drop")) },
	notWhole:  func(*assembler) {}}

func (a *assembler) error(label string, in inner) {
	a.at(label, asm.Mov.Imm(asm.R0, 0))
	a.read(8, in.header)
	a.of(asm.R1, 0, asm.Byte)
	in.firstByte(a)
	in.notWhole(a)
	a.of(protocol, in.protocol, asm.Byte)
	a.read(8+in.header, 8)
	a.big(number, 0)
	a.add(
		asm.JEq.Imm(protocol, unix.IPPROTO_TCP, "number"),
		asm.JEq.Imm(protocol, unix.IPPROTO_UDP, "number"),
		asm.JNE.Imm(protocol, in.ping, "drop"),
	)
	a.of(asm.R1, 0, asm.Byte)
	a.add(asm.JNE.Imm(asm.R1, in.echo, "drop"))
	a.big(number, 4)
	a.add(asm.Ja.Label("number"))
}

// be is a number in the byte order of a packet, as this processor loads it.
func be(n uint16) int32 {
	var bytes [2]byte
	binary.BigEndian.PutUint16(bytes[:], n)
	return int32(binary.NativeEndian.Uint16(bytes[:]))
}

// instructions are the program.
func instructions(ifindex int, addresses, ports *ebpf.Map) asm.Instructions {
	a := &assembler{}
	a.add(asm.Mov.Reg(context, asm.R1),
		asm.LoadMem(asm.R1, context, skbIfindex, asm.Word),
		asm.JNE.Imm(asm.R1, int32(ifindex), "drop"),
		asm.LoadMem(asm.R1, context, skbVLANPresent, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "drop"),
		asm.LoadMem(asm.R1, context, skbPacketType, asm.Word),
		asm.JEq.Imm(asm.R1, unix.PACKET_OUTGOING, "drop"),
		asm.Mov.Imm(transport, 0),
		asm.LoadMem(asm.R1, context, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, be(unix.ETH_P_IP), "four"),
		asm.JEq.Imm(asm.R1, be(unix.ETH_P_IPV6), "six"),
		asm.JNE.Imm(asm.R1, be(unix.ETH_P_ARP), "drop"),
	)

	a.read(0, 28)
	a.of(asm.R1, 0, asm.Word)
	a.add(asm.HostTo(asm.BE, asm.R1, asm.Word), asm.JNE.Imm(asm.R1, 1<<16|unix.ETH_P_IP, "drop"))
	a.of(asm.R1, 4, asm.Word)
	a.add(asm.HostTo(asm.BE, asm.R1, asm.Word), asm.JNE.Imm(asm.R1, 6<<24|4<<16|2, "drop"))
	a.destination(24, true)
	a.shared(addresses)
	a.add(asm.Ja.Label("pass"))

	a.at("four", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 20)
	a.of(transport, 0, asm.Byte)
	a.add(
		asm.Mov.Reg(asm.R1, transport),
		asm.RSh.Imm(asm.R1, 4),
		asm.JNE.Imm(asm.R1, 4, "drop"),
		asm.And.Imm(transport, 15),
		asm.LSh.Imm(transport, 2),
		asm.JLT.Imm(transport, 20, "drop"),
	)
	a.of(protocol, 9, asm.Byte)
	a.big(number, 6)
	a.destination(16, true)
	a.toHost()
	a.shared(addresses)
	a.add(asm.And.Imm(number, 0x1fff), asm.JNE.Imm(number, 0, "pass"))
	a.add(asm.JNE.Imm(protocol, unix.IPPROTO_ICMP, "ports"))
	a.read(0, 8)
	a.of(asm.R1, 0, asm.Byte)
	a.big(number, 4)
	a.add(
		asm.JEq.Imm(asm.R1, 0, "number"),
		asm.JEq.Imm(asm.R1, 3, "error4"),
		asm.JEq.Imm(asm.R1, 4, "error4"),
		asm.JEq.Imm(asm.R1, 5, "error4"),
		asm.JEq.Imm(asm.R1, 11, "error4"),
		asm.JEq.Imm(asm.R1, 12, "error4"),
		asm.Ja.Label("drop"),
	)
	a.error("error4", inner4)

	a.at("six", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 40)
	a.of(asm.R1, 0, asm.Byte)
	a.add(asm.RSh.Imm(asm.R1, 4), asm.JNE.Imm(asm.R1, 6, "drop"))
	a.of(protocol, 6, asm.Byte)
	a.destination(24, false)
	a.add(asm.Mov.Imm(transport, 40))
	for i := range extensions {
		label := func(name string) string { return fmt.Sprintf("%s%d", name, i) }
		a.add(
			asm.JEq.Imm(protocol, unix.IPPROTO_HOPOPTS, label("option")),
			asm.JEq.Imm(protocol, unix.IPPROTO_ROUTING, label("option")),
			asm.JEq.Imm(protocol, unix.IPPROTO_DSTOPTS, label("option")),
			asm.JNE.Imm(protocol, unix.IPPROTO_FRAGMENT, "end"),
		)
		a.read(0, 8)
		a.of(protocol, 0, asm.Byte)
		a.big(number, 2)
		a.add(
			asm.Add.Imm(transport, 8),
			asm.And.Imm(number, 0xfff8),
			asm.JNE.Imm(number, 0, "fragment"),
			asm.Ja.Label(label("next")),
		)
		a.at(label("option"), asm.Mov.Imm(asm.R0, 0))
		a.read(0, 2)
		a.of(number, 1, asm.Byte)
		a.add(
			asm.Add.Imm(number, 1),
			asm.LSh.Imm(number, 3),
			asm.Add.Reg(transport, number),
		)
		a.of(protocol, 0, asm.Byte)
		a.at(label("next"), asm.Mov.Imm(asm.R0, 0))
	}
	a.at("end", asm.JNE.Imm(protocol, unix.IPPROTO_ICMPV6, "checked"))
	a.read(0, 8)
	a.of(asm.R1, 0, asm.Byte)
	a.add(asm.JEq.Imm(asm.R1, 136, "pass"))
	a.at("checked", asm.Mov.Imm(asm.R0, 0))
	a.toHost()
	a.shared(addresses)
	a.add(asm.JNE.Imm(protocol, unix.IPPROTO_ICMPV6, "ports"))
	a.read(0, 8)
	a.of(asm.R1, 0, asm.Byte)
	a.big(number, 4)
	a.add(
		asm.JEq.Imm(asm.R1, 129, "number"),
		asm.JEq.Imm(asm.R1, 0, "drop"),
		asm.JGT.Imm(asm.R1, 4, "drop"),
	)
	a.error("error6", inner6)
	a.at("fragment", asm.Mov.Imm(asm.R0, 0))
	a.toHost()
	a.shared(addresses)
	a.add(asm.Ja.Label("pass"))

	a.at("ports", asm.JEq.Imm(protocol, unix.IPPROTO_TCP, "port"))
	a.add(asm.JNE.Imm(protocol, unix.IPPROTO_UDP, "drop"))
	a.at("port", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 4)
	a.big(number, 2)
	a.at("number", asm.Mov.Imm(asm.R0, 0))
	a.own(ports)
	a.at("pass", asm.Mov.Imm32(asm.R0, -1), asm.Return())
	a.at("drop", asm.Mov.Imm(asm.R0, 0), asm.Return())
	return a.list
}

// own drops the packet unless the number is a port of the stack.
func (a *assembler) own(ports *ebpf.Map) {
	a.add(
		asm.Mov.Reg(asm.R1, number),
		asm.RSh.Imm(asm.R1, 5),
		asm.StoreMem(asm.R10, mapKey, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, ports.FD()),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, mapKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.And.Imm(number, 31),
		asm.RSh.Reg(asm.R1, number),
		asm.And.Imm(asm.R1, 1),
		asm.JEq.Imm(asm.R1, 0, "drop"),
	)
}
