// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/netns"
)

// mostFrame is the longest frame that is read. What is longer is no message for a client.
const mostFrame = 9216

// Port has the two sockets by which a device is used. Whoever has them needs no privilege any more
// to follow it.
type Port struct {
	Index   int
	MAC     [6]byte
	packets *os.File // a packet socket with a filter
	links   *os.File // netlink's news of interfaces
}

// Open opens the sockets of a device; namespace is where it is, or nil for the calling thread's.
// It takes CAP_NET_RAW there.
func Open(namespace *os.File, device string) (*Port, error) {
	var p *Port
	open := func() (err error) {
		p, err = open(device)
		return err
	}
	err := error(nil)
	if namespace == nil {
		err = open()
	} else {
		err = netns.Run(namespace, open)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get addresses by %s: %w", device, err)
	}
	return p, nil
}

func open(device string) (*Port, error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return nil, err
	}
	a := link.Attrs()
	if len(a.HardwareAddr) != 6 {
		return nil, fmt.Errorf("it has the MAC address %q, expected one of 6 bytes", a.HardwareAddr)
	}
	p := &Port{Index: a.Index, MAC: hardware(a.HardwareAddr)}
	packets, err := openPackets(a.Index)
	if err != nil {
		return nil, fmt.Errorf("cannot open a packet socket: %w", err)
	}
	p.packets = os.NewFile(uintptr(packets), "packets:"+device)
	links, err := openLinks(a.Index)
	if err != nil {
		p.packets.Close()
		return nil, fmt.Errorf("cannot open a netlink socket: %w", err)
	}
	p.links = os.NewFile(uintptr(links), "links:"+device)
	return p, nil
}

// Inherit takes the sockets of a port that another process has opened, the packet socket first.
func Inherit(files [2]*os.File) (*Port, error) {
	p := &Port{packets: files[0], links: files[1]}
	var name unix.Sockaddr
	conn, err := p.packets.SyscallConn()
	if err == nil {
		if e := conn.Control(func(fd uintptr) { name, err = unix.Getsockname(int(fd)) }); e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get addresses by the inherited %s: %w", p.packets.Name(), err)
	}
	link, ok := name.(*unix.SockaddrLinklayer)
	if !ok || link.Ifindex == 0 || link.Halen != 6 {
		return nil, fmt.Errorf("the inherited %s is no packet socket of an Ethernet device", p.packets.Name())
	}
	p.Index, p.MAC = link.Ifindex, hardware(link.Addr[:6])
	// An earlier process may have read what was known.
	links, err := p.links.SyscallConn()
	if err == nil {
		if e := links.Control(func(fd uintptr) { err = askLink(int(fd), p.Index) }); e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the state of the inherited %s: %w", p.links.Name(), err)
	}
	return p, nil
}

// Close closes both sockets; Follow does so itself when it ends.
func (p *Port) Close() error { return errors.Join(p.packets.Close(), p.links.Close()) }

func openPackets(index int) (fd int, err error) {
	// Bound to no protocol until it has its filter.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	program, err := filter()
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1); err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return -1, err
	}
	// Kernels before 4.20 have no such option, and run the filter for sent frames as well.
	unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	// All protocols: the tap takes a frame before sockets of one protocol see it.
	var all [2]byte
	binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all[:]), Ifindex: index})
}

func openLinks(index int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err == nil {
		err = askLink(fd, index)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// askLink asks for the state of a device; the answer is like news.
func askLink(fd, index int) error {
	b := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr+4:], uint32(index))
	return unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// news is what is known of the device.
type news struct {
	gone, carrier bool
	mtu           int
}

// watch passes on what the kernel says of the device, until the socket is closed.
func (p *Port) watch(to chan<- news, ended <-chan struct{}) {
	conn, err := p.links.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, 1<<16)
	for {
		var n int
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, _, failed = unix.Recvfrom(int(fd), buffer, 0)
			if failed == unix.ENOBUFS { // news was lost
				failed = askLink(int(fd), p.Index)
				n = 0
			}
			return failed != unix.EAGAIN
		})
		if err == nil && failed == unix.EINTR {
			continue
		}
		if err != nil || failed != nil {
			return
		}
		messages, _ := syscall.ParseNetlinkMessage(buffer[:n])
		for _, m := range messages {
			if now, ok := p.readNews(m); ok {
				select {
				case to <- now:
				case <-ended:
					return
				}
			}
		}
	}
}

func (p *Port) readNews(m syscall.NetlinkMessage) (news, bool) {
	if len(m.Data) < unix.SizeofIfInfomsg || int32(binary.NativeEndian.Uint32(m.Data[4:])) != int32(p.Index) || m.Data[0] != unix.AF_UNSPEC {
		return news{}, false
	}
	switch m.Header.Type {
	case unix.RTM_DELLINK:
		return news{gone: true}, true
	case unix.RTM_NEWLINK:
		const works = unix.IFF_UP | unix.IFF_RUNNING
		now := news{carrier: binary.NativeEndian.Uint32(m.Data[8:])&works == works}
		attributes, _ := syscall.ParseNetlinkRouteAttr(&m)
		for _, a := range attributes {
			if a.Attr.Type == unix.IFLA_MTU && len(a.Value) == 4 {
				now.mtu = int(binary.NativeEndian.Uint32(a.Value))
			}
		}
		return now, true
	}
	return news{}, false
}

// receive passes on the messages that come, until the socket is closed.
func (p *Port) receive(to chan<- packet, ended <-chan struct{}) {
	conn, err := p.packets.SyscallConn()
	if err != nil {
		return
	}
	buffer, control := make([]byte, mostFrame), make([]byte, 256)
	var flood flood
	for {
		var n, c, flags int
		var from unix.Sockaddr
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, c, flags, from, failed = unix.Recvmsg(int(fd), buffer, control, 0)
			return failed != unix.EAGAIN
		})
		if err != nil {
			return
		}
		if failed == unix.ENETDOWN || failed == unix.EINTR {
			continue // the first is said once, when the device goes down; it may come up again
		}
		if failed != nil {
			return
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		partial, tagged := auxiliary(control[:c])
		if !ok || link.Pkttype == unix.PACKET_OUTGOING || flags&unix.MSG_TRUNC != 0 || tagged {
			continue
		}
		message, ok := read(buffer[:n], p.MAC, partial)
		if !ok {
			continue
		}
		message.payload = append([]byte(nil), message.payload...)
		select {
		case to <- message:
		case <-ended:
			return
		}
		if pause := flood.pause(time.Now()); pause > 0 {
			select {
			case <-time.After(pause):
			case <-ended:
				return
			}
		}
	}
}

// flood holds the reader back when more messages come than a network needs: the kernel then drops
// what does not fit into the socket, and a flood costs little.
type flood struct {
	since time.Time
	count int
}

const mostMessages = 200 // a second

// pause notes a message, and says how long the next one has to wait.
func (f *flood) pause(now time.Time) time.Duration {
	if now.Sub(f.since) >= time.Second {
		*f = flood{since: now}
	}
	if f.count++; f.count < mostMessages {
		return 0
	}
	return f.since.Add(time.Second).Sub(now)
}

// auxiliary reads what the kernel says beside a frame (struct tpacket_auxdata): whether its checksum
// is still to be computed, and whether it is of a VLAN, whose tag is not in the frame.
func auxiliary(control []byte) (partial, tagged bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false, false
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < 20 {
			continue
		}
		status, tag := binary.NativeEndian.Uint32(m.Data), binary.NativeEndian.Uint16(m.Data[16:])
		partial = status&unix.TP_STATUS_CSUMNOTREADY != 0
		tagged = status&unix.TP_STATUS_VLAN_VALID != 0 && tag&0xfff != 0
	}
	return partial, tagged
}

// send sends a frame. One that is lost is sent again later, as one lost on the wire is.
func (p *Port) send(frame []byte) {
	conn, err := p.packets.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) {
		unix.Sendto(int(fd), frame, 0, &unix.SockaddrLinklayer{Ifindex: p.Index})
	})
}
