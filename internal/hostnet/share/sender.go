// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The sender is the other side of the filter: it decides which frames of a stack go out by the host's
// interface. It is attached to the stack's tap or tun (tap.go), and sends what passes to that
// interface. Nothing else that is written to the device goes anywhere, nor does the host see it.
//
// What passes, without a VLAN tag, from the interface's own MAC address, and no longer than its MTU
// (a packet that the interface has to cut: its parts):
//
//	IPv4 without options, and IPv6 without extension headers but that of fragments, from a shared
//	address
//		TCP, UDP       with a source port of the stack
//		ICMP, ICMPv6   echo requests, whose id is a port of the stack;
//		               errors about a packet of TCP or UDP to a shared address and a port
//		               of the stack
//		fragments      all but the first, of these protocols
//	ARP requests, and IPv6 neighbour solicitations, that say of a shared address that it is at the
//	interface's MAC address.
//
// So a stack cannot speak for the host but from its ports: no other address, no answer for an address,
// no router's or DHCP server's words, no end of the host's connections.
//
// Limit: a fragment after the first has no ports. One could get into a packet of the host's that is
// sent in fragments to the same peer at the same moment with the same id.

const (
	dropFrame  = 2 // TC_ACT_SHOT
	skbFromMAC = 0 // BPF_HDR_START_MAC
	mtuLength  = -4
	protocol4  = unix.IPPROTO_ICMP
	protocol6  = unix.IPPROTO_ICMPV6
)

// newSender makes the program for what goes to that interface; mac nil: it has no Ethernet header.
func newSender(ifindex int, mac net.HardwareAddr) (*filter, error) {
	f, err := newProgram(func(f *filter) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "guise_sender", Type: ebpf.SchedCLS, License: "GPL", Instructions: sender(ifindex, mac, f.addresses, f.ports)}
	})
	if err != nil {
		return nil, err
	}
	if f.guard, err = newGuard(f.program); err != nil {
		f.close()
		return nil, explainBPF(err)
	}
	return f, nil
}

// guard is what the kernel runs: it calls the program out of an array, which the kernel empties when the
// last process that has it ends. So the program holds no longer than the process that answers for it,
// however that ends, and whoever still has the device can send nothing.
type guard struct {
	array *ebpf.Map
	entry *ebpf.Program
}

func newGuard(program *ebpf.Program) (*guard, error) {
	array, err := ebpf.NewMap(&ebpf.MapSpec{Name: "guise_guard", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	g := &guard{array: array}
	if err := array.Put(uint32(0), uint32(program.FD())); err != nil {
		g.close()
		return nil, err
	}
	g.entry, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "guise_guard", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapPtr(asm.R2, array.FD()),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, dropFrame),
		asm.Return(),
	}})
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *guard) close() {
	g.array.Close()
	if g.entry != nil {
		g.entry.Close()
	}
}

// attachSender has the kernel run it for all that is written to the device.
func (f *filter) attachSender(device netlink.Link) error {
	index := device.Attrs().Index
	if err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscType: "clsact",
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}); err != nil {
		return fmt.Errorf("the host's kernel refuses a clsact qdisc (CONFIG_NET_SCH_INGRESS): %w", err)
	}
	if err := netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          f.guard.entry.FD(), Name: "guise", DirectAction: true}); err != nil {
		return fmt.Errorf("the host's kernel refuses the filter of what the stack sends (CONFIG_NET_CLS_BPF): %w", err)
	}
	return nil
}

// is compares what was read at that offset, in parts that the verifier takes.
func (a *assembler) is(offset int16, bytes ...byte) {
	for len(bytes) > 0 {
		size, value := asm.Byte, int32(bytes[0])
		n := 1
		switch {
		case len(bytes) >= 4 && offset%4 == 0:
			// As an unsigned number: a constant of an instruction would be extended with its sign.
			a.of(asm.R1, offset, asm.Word)
			a.add(asm.LoadImm(asm.R2, int64(binary.NativeEndian.Uint32(bytes)), asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, "drop"))
			bytes, offset = bytes[4:], offset+4
			continue
		case len(bytes) >= 2 && offset%2 == 0:
			size, value, n = asm.Half, int32(binary.NativeEndian.Uint16(bytes)), 2
		}
		a.of(asm.R1, offset, size)
		a.add(asm.JNE.Imm(asm.R1, value, "drop"))
		bytes, offset = bytes[n:], offset+int16(n)
	}
}

// transports goes on at the label if the protocol is TCP or UDP, and else drops the packet.
func (a *assembler) transports(label string) {
	a.add(
		asm.JEq.Imm(protocol, unix.IPPROTO_TCP, label),
		asm.JEq.Imm(protocol, unix.IPPROTO_UDP, label),
		asm.Ja.Label("drop"),
	)
}

// about reads the packet that an ICMP error is about, which was to the stack.
func (a *assembler) about(label string, header int32, destination, next int16, four bool, addresses *ebpf.Map) {
	a.at(label, asm.Mov.Imm(asm.R0, 0))
	a.read(8, header)
	a.of(asm.R1, 0, asm.Byte)
	if four {
		a.add(asm.JNE.Imm(asm.R1, 0x45, "drop"))
		a.big(asm.R1, 6)
		a.add(asm.And.Imm(asm.R1, 0x1fff), asm.JNE.Imm(asm.R1, 0, "drop"))
	} else {
		a.add(asm.RSh.Imm(asm.R1, 4), asm.JNE.Imm(asm.R1, 6, "drop"))
	}
	a.of(protocol, next, asm.Byte)
	a.destination(destination, four)
	a.shared(addresses)
	a.read(8+header, 4)
	a.big(number, 2)
	a.transports("number")
}

// sender is the program.
func sender(ifindex int, mac net.HardwareAddr, addresses, ports *ebpf.Map) asm.Instructions {
	const checkSegments = 1 // BPF_MTU_CHK_SEGS
	a := &assembler{}
	a.add(asm.Mov.Reg(context, asm.R1),
		asm.LoadMem(asm.R1, context, skbVLANPresent, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "drop"),
		asm.StoreImm(asm.R10, mtuLength, 0, asm.Word),
		asm.Mov.Reg(asm.R1, context),
		asm.Mov.Imm(asm.R2, int32(ifindex)),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, mtuLength),
		asm.Mov.Imm(asm.R4, 0),
		asm.Mov.Imm(asm.R5, checkSegments),
		asm.FnCheckMtu.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(transport, 0),
	)
	if mac != nil {
		a.readFrom(skbFromMAC, 6, 6)
		a.is(0, mac...)
	}
	a.add(
		asm.LoadMem(asm.R1, context, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, be(unix.ETH_P_IP), "four"),
		asm.JEq.Imm(asm.R1, be(unix.ETH_P_IPV6), "six"),
	)
	if mac != nil {
		a.add(asm.JNE.Imm(asm.R1, be(unix.ETH_P_ARP), "drop"))
		a.read(0, 28)
		a.is(0, 0, 1, 8, 0, 6, 4, 0, 1)
		a.is(8, mac...)
		a.destination(12, true) // the lower half is at 14
		for i := int16(0); i < 4; i += 2 {
			a.of(asm.R1, 14+i, asm.Half)
			a.add(asm.StoreMem(asm.R10, address+12+i, asm.R1, asm.Half))
		}
		a.shared(addresses)
		a.add(asm.Ja.Label("pass"))
	} else {
		a.add(asm.Ja.Label("drop"))
	}

	a.at("four", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 20)
	a.is(0, 0x45)
	a.of(protocol, 9, asm.Byte)
	a.big(number, 6)
	a.destination(12, true)
	a.shared(addresses)
	a.add(asm.Mov.Imm(transport, 20), asm.And.Imm(number, 0x1fff), asm.JNE.Imm(number, 0, "fragment4"))
	a.add(asm.JNE.Imm(protocol, protocol4, "ports"))
	a.read(0, 8)
	a.of(asm.R1, 0, asm.Byte)
	a.big(number, 4)
	a.add(
		asm.JEq.Imm(asm.R1, 8, "number"),
		asm.JEq.Imm(asm.R1, 3, "error4"),
		asm.JEq.Imm(asm.R1, 11, "error4"),
		asm.JEq.Imm(asm.R1, 12, "error4"),
		asm.Ja.Label("drop"),
	)
	a.about("error4", 20, 16, 9, true, addresses)

	a.at("six", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 40)
	a.of(asm.R1, 0, asm.Byte)
	a.add(asm.RSh.Imm(asm.R1, 4), asm.JNE.Imm(asm.R1, 6, "drop"))
	a.of(protocol, 6, asm.Byte)
	a.big(number, 4) // the length, which only solicitations need
	a.destination(8, false)
	a.shared(addresses)
	a.add(asm.Mov.Imm(transport, 40), asm.JNE.Imm(protocol, unix.IPPROTO_FRAGMENT, "whole"))
	a.read(0, 8)
	a.of(protocol, 0, asm.Byte)
	a.big(number, 2)
	a.add(
		asm.Mov.Imm(transport, 48),
		asm.And.Imm(number, 0xfff8),
		asm.JNE.Imm(number, 0, "fragment6"),
	)
	a.at("whole", asm.JNE.Imm(protocol, protocol6, "ports"))
	a.read(0, 8)
	a.of(asm.R1, 0, asm.Byte)
	if mac != nil {
		a.add(asm.JEq.Imm(asm.R1, 135, "solicitation"))
	}
	a.big(number, 4)
	a.add(
		asm.JEq.Imm(asm.R1, 128, "number"),
		asm.JEq.Imm(asm.R1, 0, "drop"),
		asm.JGT.Imm(asm.R1, 4, "drop"),
	)
	a.about("error6", 40, 24, 6, false, addresses)
	if mac != nil {
		a.at("solicitation", asm.JNE.Imm(transport, 40, "drop"))
		a.add(asm.JNE.Imm(number, 32, "drop"))
		a.read(24, 8)
		a.is(0, 1, 1)
		a.is(2, mac...)
		a.add(asm.Ja.Label("pass"))
	}

	a.at("fragment4", asm.JEq.Imm(protocol, protocol4, "pass"))
	a.transports("pass")
	a.at("fragment6", asm.JEq.Imm(protocol, protocol6, "pass"))
	a.transports("pass")
	a.at("ports", asm.Mov.Imm(asm.R0, 0))
	a.transports("port")
	a.at("port", asm.Mov.Imm(asm.R0, 0))
	a.read(0, 4)
	a.big(number, 0)
	a.at("number", asm.Mov.Imm(asm.R0, 0))
	a.own(ports)
	a.at("pass", asm.Mov.Imm(asm.R1, int32(ifindex)))
	a.add(asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return())
	a.at("drop", asm.Mov.Imm(asm.R0, dropFrame), asm.Return())
	return a.list
}
