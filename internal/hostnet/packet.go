// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/share"
	"guise/internal/plan"
)

// A stack that uses an interface of the host: all of it, or, with ports=, with the host's own
// addresses on it. Package share says how; here a link gets what it needs.

// awaitInterfaces waits while a stack that is ending has an interface, or ports, of these links.
func awaitInterfaces(links []*plan.Link, ending func() bool) {
	AwaitStacks(ending, func() bool {
		return slices.ContainsFunc(links, func(l *plan.Link) bool {
			return hides(l) && (share.CheckOthers(l.Device, l.Ports == "") != nil || share.Taken(l.Ports))
		})
	})
}

// AwaitStacks waits while what is wanted is busy, as long as a stack is ending that may have it.
func AwaitStacks(ending, busy func() bool) {
	// A holder takes a moment to see that its last program has ended.
	unseen := time.Now().Add(patience / 3)
	patiently(func() bool {
		soon := time.Now().Before(unseen) || ending() // before they are looked at, or a stack could end unseen in between
		return !busy() || !soon
	})
}

// hides reports whether the host is not to see what it receives for the link.
func hides(l *plan.Link) bool { return l.Kind == plan.Packet && l.Device != "" }

// openPacket takes an interface of the host, or an open socket.
func openPacket(h *Host, l *plan.Link) (*os.File, error) {
	if l.Device == "" {
		return openPacketSocket(l)
	}
	if !access.Capability(unix.CAP_NET_RAW) || !access.Capability(unix.CAP_NET_ADMIN) {
		return nil, access.Refuse("%s: to use an interface of the host takes CAP_NET_RAW and CAP_NET_ADMIN, which you do not have; "+
			"use sudo, or leave --link out for a way out without", l.Flag)
	}
	device, err := netlink.LinkByName(l.Device)
	if err != nil {
		return nil, access.Refuse("%s: cannot find the interface %s: %w", l.Flag, l.Device, err)
	}
	if device.Attrs().Flags&net.FlagUp == 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%s is down, so no packet passes; `ip link set %s up` changes that", l.Device, l.Device))
	}
	request := share.Request{Interface: l.Device, Exclusive: l.Ports == ""}
	if l.MAC != "" {
		request.MAC, _ = net.ParseMAC(l.MAC) // it was checked when it was read
	}
	if !request.Exclusive {
		if err := h.shareAddresses(l, device, &request); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Flag, err)
		}
	}
	if l.MAC != "" && device.Attrs().EncapType != "ether" {
		return nil, access.Refuse("%s: %s has no Ethernet, and so no MAC address", l.Flag, l.Device)
	}
	s, err := share.Open(request, h.noted)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Flag, err)
	}
	h.Keep = append(h.Keep, s.Keep...)
	l.Raw = s.Raw
	if l.MTU == 0 {
		l.MTU = min(device.Attrs().MTU, plan.KindOf(plan.Packet).MTUMost)
	}
	// The copies in h are what counts from now on.
	packet := s.Packet
	s.Packet, s.Keep = nil, nil
	return packet, s.Close()
}

// openPacketSocket takes an open packet socket, as it is.
func openPacketSocket(l *plan.Link) (*os.File, error) {
	domain, err := unix.GetsockoptInt(l.FD, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_PACKET {
		return nil, access.Refuse("%s: descriptor %d is no open packet socket", l.Flag, l.FD)
	}
	unix.CloseOnExec(l.FD)
	return os.NewFile(uintptr(l.FD), l.Flag), nil
}

// shareAddresses finds the addresses and ports of a link that shares its interface with the host.
func (h *Host) shareAddresses(l *plan.Link, device netlink.Link, r *share.Request) error {
	list, err := netlink.AddrList(device, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("cannot list the addresses of %s: %w", l.Device, err)
	}
	var own []netip.Prefix
	for _, a := range list {
		addr, ok := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if addr = addr.Unmap(); ok && !addr.IsLinkLocalUnicast() {
			own = append(own, netip.PrefixFrom(addr, bits))
		}
	}
	if len(own) == 0 {
		return access.Refuse("%s has no address that a stack could share; without ports= a stack has %s alone, with its own address "+
			"(--ip ADDR/LEN)", l.Device, l.Device)
	}
	for _, a := range l.Addresses {
		if !slices.ContainsFunc(own, func(o netip.Prefix) bool { return o.Addr() == a.Addr() }) {
			return access.Refuse("the host does not have the address %s on %s, so its neighbours would not find it; expected one of %v, "+
				"or none for all of them", a.Addr(), l.Device, own)
		}
	}
	if len(l.Addresses) == 0 {
		l.Addresses = own
		if err := findGateways(l, device); err != nil {
			return err
		}
	}
	for _, a := range l.Addresses {
		r.Addresses = append(r.Addresses, a.Addr())
	}
	switch {
	case h.ports == nil:
		want := l.Ports
		if want == plan.PortsAuto {
			want = ""
		}
		if h.ports, err = share.Reserve(h.noted, want); err != nil {
			return err
		}
		h.asPorts = l.Ports
		for _, s := range share.StackSettings(h.ports) {
			l.Sysctls = append(l.Sysctls, plan.Sysctl{Key: s.Key, Value: s.Value})
		}
	case h.asPorts != l.Ports:
		return access.Refuse("a stack has the same ports on all its links, and an earlier link has ports=%s", h.asPorts)
	}
	r.Ports = h.ports
	for _, s := range share.LinkSettings(l.Inside) {
		l.Sysctls = append(l.Sysctls, plan.Sysctl{Key: s.Key, Value: s.Value})
	}
	return nil
}

// findGateways gives the link the host's default routes over the interface.
func findGateways(l *plan.Link, device netlink.Link) error {
	for family, all := range map[int]netip.Prefix{
		netlink.FAMILY_V4: netip.PrefixFrom(netip.IPv4Unspecified(), 0),
		netlink.FAMILY_V6: netip.PrefixFrom(netip.IPv6Unspecified(), 0),
	} {
		routes, err := netlink.RouteList(device, family)
		if err != nil {
			return fmt.Errorf("cannot list the routes of %s: %w", l.Device, err)
		}
		for _, r := range routes {
			if r.Dst != nil {
				if bits, _ := r.Dst.Mask.Size(); bits != 0 {
					continue
				}
			}
			gateway, ok := netip.AddrFromSlice(r.Gw)
			if !ok {
				l.Whole = append(l.Whole, all)
				continue
			}
			// A second one of the family is left out.
			_ = l.AddGateway(gateway.Unmap().String())
		}
	}
	return nil
}
