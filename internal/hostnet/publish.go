// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// Bind opens the host's port of a publication, as a socket for the holder. If the
// user wrote port 0, p.Host then has the port that was chosen.
func Bind(p *plan.Publication) (*os.File, error) {
	var fd int
	var host netip.AddrPort
	var err error
	patiently(func() bool {
		fd, host, err = bind(p)
		return !errors.Is(err, unix.EADDRINUSE)
	})
	if err == nil {
		p.Host = host
		return os.NewFile(uintptr(fd), p.Flag), nil
	}
	why := err.Error()
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		why = "another program has that port; choose another one, or 0 for one that is free"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		why = "the host does not have that address"
	case errors.Is(err, unix.EACCES):
		why = "ports below 1024 take CAP_NET_BIND_SERVICE; choose a higher one"
	}
	return nil, access.Refuse("%s: cannot listen on %s/%s of the host: %s", p.Flag, p.Host, p.Protocol(), why)
}

// bind returns the socket, and the address it has.
func bind(p *plan.Publication) (int, netip.AddrPort, error) {
	if p.UDP {
		return bound(p.Host, unix.SOCK_DGRAM)
	}
	// A socket that was bound to port 0 loses its port when it stops listening.
	// So one socket finds a free port, and a second one is bound to that number.
	first, host, err := bound(p.Host, unix.SOCK_STREAM)
	if err != nil || p.Host.Port() != 0 {
		return reserve(first, host, err)
	}
	second, host, err := bound(host, unix.SOCK_STREAM)
	unix.Close(first)
	return reserve(second, host, err)
}

// reserve takes the port of a bound TCP socket for this socket alone. The socket
// must not listen yet (holder/relay/publish.c), but does for a moment, because only
// then the kernel reports that another program listens there. Afterwards it has
// SO_REUSEADDR no more, so that no other program can listen there.
func reserve(fd int, host netip.AddrPort, err error) (int, netip.AddrPort, error) {
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err == nil {
		err = unix.Shutdown(fd, unix.SHUT_RD)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
	}
	return fd, host, err
}

// bound returns a new socket that is bound to that address, and the address with its port.
func bound(host netip.AddrPort, kind int) (fd int, has netip.AddrPort, err error) {
	family := unix.AF_INET
	if host.Addr().Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, host, err
	}
	if kind == unix.SOCK_STREAM {
		// Connections of an earlier run may still be in TIME_WAIT.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, sockaddr(host))
	}
	if err == nil {
		has, err = name(fd, host)
	}
	if err != nil {
		unix.Close(fd)
		return -1, host, err
	}
	return fd, has, nil
}

// name returns host with the port that the socket has.
func name(fd int, host netip.AddrPort) (netip.AddrPort, error) {
	own, err := unix.Getsockname(fd)
	if err != nil {
		return host, err
	}
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(host.Addr(), uint16(own.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(host.Addr(), uint16(own.Port)), nil
	}
	return host, fmt.Errorf("the kernel says it has the name %v", own)
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zone(a.Addr())}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// zone returns the number of the interface that an address names.
func zone(a netip.Addr) uint32 {
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	if link, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(link.Index)
	}
	return 0
}
