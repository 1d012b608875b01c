// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// openTap attaches to the tap of that name in this thread's network
// namespace, and makes it when there is none: it then vanishes with the last
// descriptor. Offloads and the length of the virtio-net header are set by the
// stack's link, which knows what it can take.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENODEV, unix.ENXIO:
		return nil, refuse("there is no /dev/net/tun, so no tap can be had; load the driver (modprobe tun), "+
			"in a container pass the device (--device /dev/net/tun), or use --link none: %w", err)
	default:
		return nil, refuse("cannot open /dev/net/tun: %w; use sudo, or let users open it (sudo chmod 666 /dev/net/tun: each "+
			"still gets no taps but his own)", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, refuse("%q cannot be the name of a tap: %w", name, err)
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, tapError(name, err)
	}
	return os.NewFile(uintptr(fd), "tap:"+name), nil
}

func tapError(name string, err error) error {
	switch err {
	case unix.EPERM:
		if _, missing := netlink.LinkByName(name); missing == nil {
			return refuse("the tap %s is not yours: it takes CAP_NET_ADMIN (sudo guise ...), or its owner to be you "+
				"(sudo ip tuntap add %s mode tap vnet_hdr user $USER)", name, name)
		}
		return refuse("there is no tap %s, and to make one takes CAP_NET_ADMIN; use sudo, or have it made for you once "+
			"(sudo ip tuntap add %s mode tap vnet_hdr user $USER)", name, name)
	case unix.EBUSY:
		return fmt.Errorf("the tap %s is in use by another process: %w", name, err)
	case unix.EINVAL:
		return refuse("%s exists and is no tap that guise can use; it must be of mode tap, with one queue: %w", name, err)
	}
	return fmt.Errorf("cannot attach to the tap %s: %w", name, err)
}

// isBusy says whether another process has the tap.
func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) }

// CheckTapDescriptor refuses a descriptor that is no open tap, and keeps it
// from the program, which has no business with it.
func CheckTapDescriptor(fd int) error {
	request, _ := unix.NewIfreq("")
	if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, request); err != nil {
		return refuse("descriptor %d is no open tap: %w", fd, err)
	}
	unix.CloseOnExec(fd)
	return nil
}

func bringUp(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("cannot bring %s up: %w", name, err)
	}
	return link, nil
}
