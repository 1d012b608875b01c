// SPDX-License-Identifier: GPL-2.0-only

package macvtap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/netns"
	"guise/internal/plain"
	"guise/internal/suggest"
)

// parent is an interface of the host beside which a device can be made.
type parent struct {
	name    string
	index   int
	refusal error // why it takes no second MAC address
}

// look checks an interface of the namespace, and refuses one that can have no device beside it.
func look(namespace *os.File, name string) (*parent, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, access.Refuse("there is no interface %s (%s)", plain.Text(name), whichThereAre(name))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for the interface %s: %w", plain.Text(name), err)
	}
	a := link.Attrs()
	switch {
	case a.Flags&net.FlagLoopback != 0:
		return nil, access.Refuse("%s is the loopback, beside which no interface can be; expected one of a network (%s)", name, whichThereAre(name))
	case a.EncapType != "ether":
		return nil, access.Refuse("%s is no Ethernet interface (its kind is %s), and only beside those another can be made; let the stack share the address of %s",
			name, a.EncapType, name)
	case a.MasterIndex != 0:
		if err := refusePort(name, a); err != nil {
			return nil, err
		}
	}
	if a.Flags&net.FlagUp == 0 {
		return nil, access.Refuse("%s is down, so an interface beside it is as well; `ip link set %s up` changes that", name, name)
	}
	p := &parent{name: name, index: a.Index}
	var wireless bool
	err = netns.Run(namespace, func() error {
		wireless, err = isWireless(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether %s is wireless: %w", name, err)
	}
	if wireless && !takesMACs(wirelessType(a.Index)) {
		p.refusal = fmt.Errorf("%s is the station of a Wi-Fi, and the access point drops frames with another MAC address than its own", name)
	}
	return p, nil
}

func refusePort(name string, a *netlink.LinkAttrs) error {
	master, err := netlink.LinkByIndex(a.MasterIndex)
	if err != nil {
		return fmt.Errorf("cannot look for the interface that %s belongs to: %w", name, err)
	}
	if master.Type() == "vrf" {
		return nil // it takes no frames from its ports
	}
	whole := master.Attrs().Name
	return access.Refuse("%s is a port of the %s %s, which takes all its frames; name %s in its place", name, master.Type(), whole, whole)
}

// isWireless needs a thread that ends afterwards.
func isWireless(name string) (bool, error) {
	if err := mountSysfs(); err != nil {
		return false, err
	}
	for _, sign := range []string{"wireless", "phy80211"} {
		if _, err := os.Stat(filepath.Join(mounted, "class/net", name, sign)); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// wirelessType asks nl80211 for what an interface is in its Wi-Fi. Where the driver does not know
// that interface of the kernel's, it is unspecified.
func wirelessType(index int) uint32 {
	family, err := netlink.GenlFamilyGet("nl80211")
	if err != nil {
		return unix.NL80211_IFTYPE_UNSPECIFIED
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddData(&nl.Genlmsg{Command: unix.NL80211_CMD_GET_INTERFACE})
	request.AddData(nl.NewRtAttr(unix.NL80211_ATTR_IFINDEX, nl.Uint32Attr(uint32(index))))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return unix.NL80211_IFTYPE_UNSPECIFIED
	}
	for _, answer := range answers {
		if len(answer) < nl.SizeofGenlmsg {
			continue
		}
		attributes, err := nl.ParseRouteAttr(answer[nl.SizeofGenlmsg:])
		if err != nil {
			continue
		}
		for _, a := range attributes {
			if a.Attr.Type == unix.NL80211_ATTR_IFTYPE && len(a.Value) >= 4 {
				return binary.NativeEndian.Uint32(a.Value)
			}
		}
	}
	return unix.NL80211_IFTYPE_UNSPECIFIED
}

// takesMACs reports whether an interface of that type sends frames with MAC addresses of others.
func takesMACs(kind uint32) bool {
	return kind == unix.NL80211_IFTYPE_AP || kind == unix.NL80211_IFTYPE_AP_VLAN || kind == unix.NL80211_IFTYPE_P2P_GO
}

// explain says what an error of the kernel means when it makes a device beside the interface.
func (p *parent) explain(kind string, err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return access.Refuse("the host's kernel has no %s (modprobe %s): %w", kind, kind, err)
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EINVAL) && kind == Macvtap:
		return access.Refuse("%s can have no %s beside it, because something else takes its frames (%s): %w", p.name, kind, p.users(), err)
	}
	return fmt.Errorf("cannot make a %s beside %s: %w", kind, p.name, err)
}

// users names the devices of this namespace that are beside the interface.
func (p *parent) users() string {
	links, _ := netlink.LinkList()
	var names []string
	for _, l := range links {
		if l.Attrs().ParentIndex == p.index && l.Type() != "veth" && l.Type() != "vlan" {
			names = append(names, fmt.Sprintf("the %s %s", l.Type(), l.Attrs().Name))
		}
	}
	if len(names) == 0 {
		return "a device in another namespace, or a program"
	}
	return strings.Join(names, ", ")
}

// whichThereAre names the host's interfaces, those of a similar name first.
func whichThereAre(name string) string {
	links, _ := netlink.LinkList()
	var names []string
	for _, l := range links {
		if a := l.Attrs(); a.Flags&net.FlagLoopback == 0 && a.EncapType == "ether" {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return "the host has no Ethernet interface"
	}
	return suggest.Hint(name, names)
}
