// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plan"
)

// Bind takes the host's port of a publication: a socket for the holder. What
// port 0 has become stands in p.Host then.
//
// A TCP socket does not listen yet (holder/publish.c), but it did for a moment:
// only so the kernel says that somebody else does. Without SO_REUSEADDR from then
// on, nobody else can.
//
// A port in use is asked for again for a short while: the holder of a stack
// that has just ended gives it back a moment after its program's end.
func Bind(p *plan.Publication) (*os.File, error) {
	fd, err := bind(p)
	for tries := 0; errors.Is(err, unix.EADDRINUSE) && tries < 20; tries++ {
		time.Sleep(50 * time.Millisecond)
		fd, err = bind(p)
	}
	if err == nil {
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
	return nil, refuse("%s: cannot listen on %s/%s of the host: %s", p.Flag, p.Host, p.Protocol(), why)
}

func bind(p *plan.Publication) (fd int, err error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if p.Host.Addr().Is6() {
		family = unix.AF_INET6
	}
	if p.UDP {
		kind = unix.SOCK_DGRAM
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if !p.UDP {
		// Connections of an earlier run may still be in TIME_WAIT.
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return -1, err
		}
	}
	if err = unix.Bind(fd, sockaddr(p.Host)); err != nil {
		return -1, err
	}
	if !p.UDP {
		if err = unix.Listen(fd, 1); err != nil {
			return -1, err
		}
		if err = unix.Shutdown(fd, unix.SHUT_RD); err != nil {
			return -1, err
		}
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0); err != nil {
			return -1, err
		}
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return -1, err
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		p.Host = netip.AddrPortFrom(p.Host.Addr(), uint16(a.Port))
	case *unix.SockaddrInet6:
		p.Host = netip.AddrPortFrom(p.Host.Addr(), uint16(a.Port))
	default:
		return -1, fmt.Errorf("the kernel says it has the name %v", name)
	}
	return fd, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zone(a.Addr())}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}
