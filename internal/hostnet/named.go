// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
	"guise/internal/suggest"
)

// A tap or tun that the user names should exist, and is not changed. The name of a tap that
// does not exist may be a typing error: if guise made that tap, it would not be connected to
// anything, and the program would only see time-outs. So guise makes it only if the user gives
// the stack an address on it, and adds a note.

// openNamed opens a tap or tun that the user named.
func (h *Host) openNamed(l *plan.Link) (*os.File, error) {
	name := l.Device
	device, err := netlink.LinkByName(name)
	missing := errors.As(err, &netlink.LinkNotFoundError{})
	if err != nil && !missing {
		return nil, fmt.Errorf("%s: cannot look for %s: %w", l.Flag, name, err)
	}
	if missing {
		if err := mayMake(l); err != nil {
			return nil, err
		}
	}
	if err := checkOwners(l); err != nil {
		return nil, err
	}
	var file *os.File
	patiently(func() bool {
		file, err = tap.Open(l.Kind, name)
		return !tap.IsBusy(err)
	})
	switch {
	case err != nil:
		return nil, err
	case missing:
		h.Notes = append(h.Notes, fmt.Sprintf("%s: there was no tap %s, so guise has made it for as long as the stack lives; "+
			"the host has no address on it (other taps: %s)", l.Flag, name, whichThereAre(l.Kind, name)))
		_, err = tap.BringUp(name)
	case device.Attrs().Flags&net.FlagUp == 0:
		h.Notes = append(h.Notes, fmt.Sprintf("the %s %s is down, so no packet passes; `ip link set %s up` changes that",
			l.Kind, name, name))
	}
	return file, err
}

// mayMake returns nil if guise makes the device of that link, and otherwise an error that names
// the devices that exist.
func mayMake(l *plan.Link) error {
	others, name := whichThereAre(l.Kind, l.Device), l.Device
	switch {
	case l.Kind == plan.Tun:
		return access.Refuse("%s: there is no tun %s (%s); `ip tuntap add %s mode tun vnet_hdr user $USER` makes it",
			l.Flag, name, others, name)
	case !access.Capability(unix.CAP_NET_ADMIN):
		return access.Refuse("%s: there is no tap %s (%s), and to make one takes CAP_NET_ADMIN; have one made for you once "+
			"(sudo guise setup, and leave --link out; or sudo ip tuntap add %s mode tap vnet_hdr user $USER)",
			l.Flag, name, others, name)
	case len(l.Addresses) == 0:
		return access.Refuse("%s: there is no tap %s (%s); guise makes it if the stack gets an address on it (--ip ADDR/LEN), "+
			"--link tap makes one with addresses and a way out, and guise setup one for a user without root",
			l.Flag, name, others)
	}
	return nil
}

// checkOwners refuses an address that the host has itself, where both would answer for it: at
// the two ends of one device, or in one bridge. It does not matter with passt, which opens
// sockets of the host. With a stream it is not known where the other end is.
func checkOwners(l *plan.Link) error {
	for _, a := range l.Addresses {
		if owner := survey.Owner(netip.PrefixFrom(a.Addr(), a.Addr().BitLen())); owner != "" {
			where := "--ip " + a.String()
			if l.Place != "" {
				where = l.Place + ": " + a.String()
			}
			return access.Refuse("%s: the host has this address itself, on %s, and would answer in place of the stack; "+
				"expected an address that no machine has there", where, owner)
		}
	}
	return nil
}

// openInherited takes a tap or tun that guise has inherited as a descriptor. Its other end may
// be in another network namespace. So what would be an error in this one is only a note.
func (h *Host) openInherited(l *plan.Link) (*os.File, error) {
	if err := tap.Check(l.Kind, l.FD); err != nil {
		return nil, err
	}
	if err := checkOwners(l); err != nil {
		h.Notes = append(h.Notes, fmt.Sprintf("%v, unless the other end of the %s is in another network namespace", err, l.Kind))
	}
	return os.NewFile(uintptr(l.FD), l.Flag), nil
}

// whichThereAre names taps, or tuns, of the host: those with a name similar to this one, or
// else all. It leaves out those of other stacks, which are in use.
func whichThereAre(kind, name string) string {
	mode := netlink.TuntapMode(netlink.TUNTAP_MODE_TAP)
	if kind == plan.Tun {
		mode = netlink.TUNTAP_MODE_TUN
	}
	devices, _ := netlink.LinkList()
	var names []string
	for _, d := range devices {
		made := strings.HasPrefix(d.Attrs().Name, tap.Prefix) && !strings.HasPrefix(d.Attrs().Name, tap.SetupPrefix)
		if device, ok := d.(*netlink.Tuntap); ok && device.Mode == mode && device.Name != name && !made {
			names = append(names, device.Name)
		}
	}
	if len(names) == 0 {
		return "the host has none"
	}
	return suggest.Hint(name, names)
}
