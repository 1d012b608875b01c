// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"os"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// openStream opens the Unix stream socket of a link, with this user's rights.
func openStream(_ *Host, l *plan.Link) (*os.File, error) {
	if l.FD >= 0 {
		if err := checkStreamDescriptor(l.FD); err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(l.FD), l.Flag), nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: l.Path}); err != nil {
		unix.Close(fd)
		return nil, access.Refuse("cannot connect to %s: %w; expected a stream socket on which passt, or QEMU "+
			"(-netdev stream,server=on), waits", l.Path, err)
	}
	return os.NewFile(uintptr(fd), l.Flag), nil
}

// checkStreamDescriptor refuses a descriptor that is not a connected Unix stream
// socket, and makes it close-on-exec, so that the program does not inherit it.
func checkStreamDescriptor(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return access.Refuse("descriptor %d is no socket: %w", fd, err)
	}
	if domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); kind != unix.SOCK_STREAM || domain != unix.AF_UNIX {
		return access.Refuse("descriptor %d is no Unix stream socket", fd)
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return access.Refuse("descriptor %d is not connected: %w", fd, err)
	}
	unix.CloseOnExec(fd)
	return nil
}
