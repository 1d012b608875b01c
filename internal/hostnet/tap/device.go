// SPDX-License-Identifier: GPL-2.0-only

// Package tap opens taps and tuns of the host, and the ends of paths.
package tap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// Prefix begins the names of the taps that guise makes.
const Prefix = "guise"

// SetupPrefix begins the names of the taps that `guise setup` makes. It begins with
// Prefix, so that the firewall's rules for stacks apply to them as well.
const SetupPrefix = Prefix + "-u"

// Open opens the tap or tun of that name in this thread's network namespace. It
// makes one if there is none, which the kernel removes with its last descriptor.
// The stack's link sets offloads and the length of the virtio-net header, because
// it knows what it supports.
func Open(kind, name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENODEV, unix.ENXIO:
		return nil, access.Refuse("there is no /dev/net/tun, so no %s can be had; load the driver (modprobe tun), "+
			"in a container pass the device (--device /dev/net/tun), or use --link none: %w", kind, err)
	default:
		return nil, access.Refuse("cannot open /dev/net/tun: %w; use sudo, or let users open it (sudo chmod 666 /dev/net/tun: each user "+
			"still opens only taps made for that user)", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, access.Refuse("%q cannot be the name of a %s: %w", name, kind, err)
	}
	mode := uint16(unix.IFF_TAP)
	if kind == plan.Tun {
		mode = unix.IFF_TUN
	}
	request.SetUint16(mode | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, deviceError(kind, name, err)
	}
	return os.NewFile(uintptr(fd), kind+":"+name), nil
}

func deviceError(kind, name string, err error) error {
	switch err {
	case unix.EPERM:
		if _, missing := netlink.LinkByName(name); missing == nil {
			return access.Refuse("the %s %s is not yours: it takes CAP_NET_ADMIN (sudo guise ...), or its owner to be you "+
				"(sudo ip tuntap add %s mode %s vnet_hdr user $USER)", kind, name, name, kind)
		}
		return access.Refuse("there is no %s %s, and to make one takes CAP_NET_ADMIN; use sudo, or have it made for you once "+
			"(sudo ip tuntap add %s mode %s vnet_hdr user $USER)", kind, name, name, kind)
	case unix.EBUSY:
		return fmt.Errorf("the %s %s is in use by another process: %w", kind, name, err)
	case unix.EINVAL:
		return access.Refuse("%s exists and is no %s that guise can use; it must be of mode %s, with one queue: %w", name, kind, kind, err)
	}
	return fmt.Errorf("cannot attach to the %s %s: %w", kind, name, err)
}

// IsBusy reports whether the error says that another process has the tap.
func IsBusy(err error) bool { return errors.Is(err, unix.EBUSY) }

// Check refuses a descriptor that is not an open tap (or tun), and makes it
// close-on-exec, so that the program does not inherit it.
func Check(kind string, fd int) error {
	request, _ := unix.NewIfreq("")
	if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, request); err != nil {
		return access.Refuse("descriptor %d is no open %s: %w", fd, kind, err)
	}
	unix.CloseOnExec(fd)
	return nil
}

// BringUp sets a device up, and returns it.
func BringUp(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("cannot bring %s up: %w", name, err)
	}
	return link, nil
}

// AddAddress gives a device an address.
func AddAddress(device netlink.Link, p netip.Prefix) error {
	address := &netlink.Addr{IPNet: Net(p)}
	if p.Addr().Is6() {
		// No other host is on this link: duplicate address detection is not needed.
		address.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(device, address); err != nil {
		return fmt.Errorf("cannot give %s the address %s: %w", device.Attrs().Name, p, err)
	}
	return nil
}

// Net returns an address in netlink's form.
func Net(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
