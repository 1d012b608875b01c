// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Frames are read and written whole, from Ethernet on: the host's kernel has none of the addresses.

const (
	dhcp4Server, dhcp4Client = 67, 68
	dhcp6Client, dhcp6Server = 546, 547
	routerSolicitation       = 133
	routerAdvertisement      = 134
	headEther, headIP4       = 14, 20
	headIP6, headUDP         = 40, 8
)

type hardware = [6]byte

var (
	everybody  = hardware{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	allServers = netip.MustParseAddr("ff02::1:2")
	allRouters = netip.MustParseAddr("ff02::2")
	allHosts   = netip.MustParseAddr("ff02::1")
	broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
)

type protocol int

const (
	dhcp4 protocol = iota + 1
	dhcp6
	advertisement
)

// packet is a message that came.
type packet struct {
	protocol protocol
	mac      hardware // whose frame it was: that of the server, or of the gateway to it
	source   netip.Addr
	payload  []byte // the message of DHCP, or what follows ICMPv6's first 4 bytes
}

// filter is what the kernel passes of all frames: DHCP for clients and router advertisements. The
// stack's own traffic wakes nobody here.
func filter() ([]unix.SockFilter, error) {
	const drop, take = 20, 19 // indices below
	to := func(from, target int) uint8 { return uint8(target - from - 1) }
	program := []bpf.Instruction{
		0:    bpf.LoadAbsolute{Off: 12, Size: 2},
		1:    bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: to(1, 9)},
		2:    bpf.LoadAbsolute{Off: 23, Size: 1},
		3:    bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipFalse: to(3, drop)},
		4:    bpf.LoadAbsolute{Off: 20, Size: 2},
		5:    bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: to(5, drop)}, // a fragment
		6:    bpf.LoadMemShift{Off: 14},
		7:    bpf.LoadIndirect{Off: 16, Size: 2},
		8:    bpf.JumpIf{Cond: bpf.JumpEqual, Val: dhcp4Client, SkipTrue: to(8, take), SkipFalse: to(8, drop)},
		9:    bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: to(9, drop)},
		10:   bpf.LoadAbsolute{Off: 20, Size: 1},
		11:   bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipFalse: to(11, 14)},
		12:   bpf.LoadAbsolute{Off: 56, Size: 2},
		13:   bpf.JumpIf{Cond: bpf.JumpEqual, Val: dhcp6Client, SkipTrue: to(13, take), SkipFalse: to(13, drop)},
		14:   bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipFalse: to(14, drop)},
		15:   bpf.LoadAbsolute{Off: 54, Size: 1},
		16:   bpf.JumpIf{Cond: bpf.JumpEqual, Val: routerAdvertisement, SkipFalse: to(16, drop)},
		17:   bpf.LoadAbsolute{Off: 21, Size: 1},
		18:   bpf.JumpIf{Cond: bpf.JumpEqual, Val: 255, SkipFalse: to(18, drop)},
		take: bpf.RetConstant{Val: mostFrame},
		drop: bpf.RetConstant{Val: 0},
	}
	raw, err := bpf.Assemble(program)
	return socketFilter(raw), err
}

// socketFilter is a program as the kernel takes it.
func socketFilter(raw []bpf.RawInstruction) []unix.SockFilter {
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter
}

// read takes a frame that is for this client. partial: the checksum was left to a device that the
// frame never reached.
func read(frame []byte, own hardware, partial bool) (packet, bool) {
	if len(frame) < headEther {
		return packet{}, false
	}
	to, p := hardware(frame), packet{mac: hardware(frame[6:])}
	if to != own && to[0]&1 == 0 || p.mac[0]&1 != 0 {
		return packet{}, false
	}
	switch rest := frame[headEther:]; binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_IP:
		return p, p.readIP4(rest, partial)
	case unix.ETH_P_IPV6:
		return p, p.readIP6(rest, own, partial)
	}
	return packet{}, false
}

func (p *packet) readIP4(b []byte, partial bool) bool {
	if len(b) < headIP4 || b[0]>>4 != 4 {
		return false
	}
	head, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if head < headIP4 || total < head+headUDP || total > len(b) || sum(0, b[:head]) != 0xffff {
		return false
	}
	if binary.BigEndian.Uint16(b[6:])&0x3fff != 0 || b[9] != unix.IPPROTO_UDP {
		return false
	}
	p.protocol, p.source = dhcp4, netip.AddrFrom4([4]byte(b[12:]))
	return host(p.source) && p.readUDP(b[head:total], b[12:20], dhcp4Client, partial)
}

func (p *packet) readIP6(b []byte, own hardware, partial bool) bool {
	if len(b) < headIP6 || b[0]>>4 != 6 {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length > len(b)-headIP6 {
		return false
	}
	body := b[headIP6 : headIP6+length]
	if p.source = netip.AddrFrom16([16]byte(b[8:])); !host(p.source) {
		return false
	}
	switch b[6] {
	case unix.IPPROTO_UDP:
		p.protocol = dhcp6
		return len(body) >= headUDP && p.readUDP(body, b[8:40], dhcp6Client, partial)
	case unix.IPPROTO_ICMPV6:
		// 255: no router has forwarded it (RFC 4861, 6.1.2).
		if len(body) < 16 || b[7] != 255 || body[0] != routerAdvertisement || body[1] != 0 || !p.source.IsLinkLocalUnicast() {
			return false
		}
		if !partial && sum(pseudo(b[8:40], unix.IPPROTO_ICMPV6, length), body) != 0xffff {
			return false
		}
		p.protocol, p.payload = advertisement, body[4:]
		return true
	}
	return false
}

// readUDP reads from the UDP header on; ends has the addresses.
func (p *packet) readUDP(b, ends []byte, port uint16, partial bool) bool {
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < headUDP || length > len(b) || binary.BigEndian.Uint16(b[2:]) != port {
		return false
	}
	if b = b[:length]; binary.BigEndian.Uint16(b[6:]) == 0 {
		if port == dhcp6Client {
			return false
		}
	} else if !partial && sum(pseudo(ends, unix.IPPROTO_UDP, length), b) != 0xffff {
		return false
	}
	p.payload = b[headUDP:]
	return true
}

// udp4 writes a frame of DHCPv4.
func udp4(from, to hardware, source, destination netip.Addr, payload []byte) []byte {
	ends := append(source.AsSlice(), destination.AsSlice()...)
	datagram := udp(dhcp4Client, dhcp4Server, ends, payload)
	b := ether(from, to, unix.ETH_P_IP)
	b = append(b, 0x45, 0xc0) // DSCP CS6, as of a network's control
	b = binary.BigEndian.AppendUint16(b, uint16(headIP4+len(datagram)))
	b = append(b, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0)
	b = append(b, ends...)
	binary.BigEndian.PutUint16(b[headEther+10:], ^sum(0, b[headEther:]))
	return append(b, datagram...)
}

// udp6 writes a frame of DHCPv6, to all servers.
func udp6(from hardware, source netip.Addr, payload []byte) []byte {
	ends := append(source.AsSlice(), allServers.AsSlice()...)
	return ip6(from, allServers, ends, unix.IPPROTO_UDP, 1, udp(dhcp6Client, dhcp6Server, ends, payload))
}

// solicitation writes the question for routers. Its source is unspecified, which an answer to all
// follows: so it does not matter whether the stack has its link-local address yet.
func solicitation(from hardware) []byte {
	ends := append(netip.IPv6Unspecified().AsSlice(), allRouters.AsSlice()...)
	body := []byte{routerSolicitation, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(body[2:], ^sum(pseudo(ends, unix.IPPROTO_ICMPV6, len(body)), body))
	return ip6(from, allRouters, ends, unix.IPPROTO_ICMPV6, 255, body)
}

func ip6(from hardware, group netip.Addr, ends []byte, next, hops byte, body []byte) []byte {
	g := group.As16()
	b := ether(from, hardware{0x33, 0x33, g[12], g[13], g[14], g[15]}, unix.ETH_P_IPV6)
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = append(b, next, hops)
	return append(append(b, ends...), body...)
}

func ether(from, to hardware, kind uint16) []byte {
	b := make([]byte, 0, 600)
	b = append(append(b, to[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(b, kind)
}

func udp(from, to uint16, ends, payload []byte) []byte {
	length := headUDP + len(payload)
	b := make([]byte, 0, length)
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(append(b, 0, 0), payload...)
	check := ^sum(pseudo(ends, unix.IPPROTO_UDP, length), b)
	if check == 0 {
		check = 0xffff // 0 would mean that there is none
	}
	binary.BigEndian.PutUint16(b[6:], check)
	return b
}

// pseudo is the sum of what checksums cover beside the message itself.
func pseudo(ends []byte, next byte, length int) uint32 {
	return uint32(sum(uint32(next)+uint32(length), ends))
}

// sum adds 16-bit words in one's complement.
func sum(s uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
