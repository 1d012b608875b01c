// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// device is what the host has on one of its interfaces, as far as a stack wants to know it.
type device struct {
	index     int
	name      string
	mac       string
	mtu       int
	ethernet  bool
	loopback  bool
	master    int  // the bridge or bond that it is a port of
	up        bool // by whoever administers the host
	carrier   bool
	addresses []netip.Prefix // fit to be shared: the first of each family is the best
	gateways  []gateway      // of its default routes: at most one a family
	onLink    []netip.Prefix // networks that are reached without a router
}

// gateway is a default route. Without an address all is reached on the link itself.
type gateway struct {
	four    bool
	address netip.Addr
}

// host reads the interfaces of one network namespace, and says when to read them again.
//
// Whatever the kernel says on the netlink socket means only that something is another than it was:
// the state is then read as a whole. So it makes no difference when messages are lost because too many
// came at once (ENOBUFS), and many changes in a burst cost one reading.
type host struct {
	namespace netns.NsHandle // netns.None(): that of the process
	handle    *netlink.Handle
	events    *nl.NetlinkSocket
}

// newHost opens the sockets; the events begin before the first look.
func newHost(namespace netns.NsHandle) (*host, error) {
	groups := []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE}
	events, err := nl.SubscribeAt(namespace, netns.None(), unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for changes of the host's interfaces: %w", err)
	}
	handle, err := netlink.NewHandleAt(namespace, unix.NETLINK_ROUTE)
	if err != nil {
		events.Close()
		return nil, fmt.Errorf("cannot ask for the host's interfaces: %w", err)
	}
	return &host{namespace, handle, events}, nil
}

// await waits for messages, and reports whether one of them may concern these interfaces.
func (h *host) await(indices []int) (bool, error) {
	messages, _, err := h.events.Receive()
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOBUFS):
		return true, nil // some are lost
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		return false, nil
	default:
		return false, fmt.Errorf("cannot hear of changes of the host's interfaces: %w", err)
	}
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			if index, ok := outOf(m.Data); !ok || slices.Contains(indices, index) {
				return true, nil
			}
		default:
			return true, nil
		}
	}
	return false, nil
}

// outOf is the interface of a route, unless it has none or several.
func outOf(message []byte) (index int, ok bool) {
	if len(message) < unix.SizeofRtMsg {
		return 0, false
	}
	attributes, err := nl.ParseRouteAttr(message[unix.SizeofRtMsg:])
	if err != nil {
		return 0, false
	}
	for _, a := range attributes {
		if a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4 {
			return int(nl.NativeEndian().Uint32(a.Value)), true
		}
	}
	return 0, false
}

// look reads the interfaces of these names; those that the host does not have are missing.
func (h *host) look(names []string) (map[string]*device, error) {
	// A dump that was interrupted by a change is followed by a message about that change.
	links, err := h.handle.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("cannot list the host's interfaces: %w", err)
	}
	found := map[string]*device{}
	byIndex := map[int]*device{}
	for _, l := range links {
		a := l.Attrs()
		if slices.Contains(names, a.Name) {
			d := newDevice(a)
			found[d.name], byIndex[d.index] = d, d
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	addresses, err := h.handle.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("cannot list the host's addresses: %w", err)
	}
	for _, a := range addresses {
		if d := byIndex[a.LinkIndex]; d != nil {
			d.takeAddress(&a)
		}
	}
	routes, err := h.handle.RouteListFiltered(netlink.FAMILY_ALL,
		&netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("cannot list the host's routes: %w", err)
	}
	// The route that the host itself would use.
	slices.SortStableFunc(routes, func(a, b netlink.Route) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			continue
		}
		if d := byIndex[r.LinkIndex]; d != nil {
			d.takeRoute(r.Family, r.Dst, r.Gw)
		}
		for _, hop := range r.MultiPath {
			if d := byIndex[hop.LinkIndex]; d != nil {
				d.takeRoute(r.Family, r.Dst, hop.Gw)
			}
		}
	}
	for _, d := range found {
		d.order()
	}
	return found, nil
}

// names are those of all interfaces.
func (h *host) names() (names []string) {
	links, _ := h.handle.LinkList()
	for _, l := range links {
		if a := l.Attrs(); a.Flags&net.FlagLoopback == 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

func newDevice(a *netlink.LinkAttrs) *device {
	d := &device{index: a.Index, name: a.Name, mtu: a.MTU, loopback: a.Flags&net.FlagLoopback != 0,
		master: a.MasterIndex, up: a.Flags&net.FlagUp != 0, ethernet: a.EncapType == "ether"}
	if d.ethernet {
		d.mac = a.HardwareAddr.String()
	}
	// IFF_LOWER_UP is the carrier; IFF_RUNNING is also the opinion of who authenticates on the link
	// (operstate dormant).
	d.carrier = d.up && a.RawFlags&unix.IFF_LOWER_UP != 0 && a.RawFlags&unix.IFF_RUNNING != 0
	return d
}

// takeAddress takes an address that the host uses for what it sends. One that is still being looked for
// (DAD), that another machine has, or that is about to be given up is none; nor is a temporary one
// (RFC 8981), for a path should last.
func (d *device) takeAddress(a *netlink.Addr) {
	const unfit = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_DEPRECATED | unix.IFA_F_TEMPORARY
	addr, ok := netip.AddrFromSlice(a.IP)
	addr = addr.Unmap()
	flags := a.Flags
	if addr.Is4() {
		flags &^= unix.IFA_F_SECONDARY // which is IFA_F_TEMPORARY
	}
	if !ok || flags&unfit != 0 || a.Scope != unix.RT_SCOPE_UNIVERSE || addr.IsLinkLocalUnicast() && addr.Is6() {
		return
	}
	ones, _ := a.Mask.Size()
	if a.Peer != nil && a.Peer.IP != nil && !a.Peer.IP.Equal(a.IP) {
		ones = addr.BitLen() // point to point: the peer's network is a route
	}
	d.addresses = append(d.addresses, netip.PrefixFrom(addr, ones))
}

func (d *device) takeRoute(family int, dst *net.IPNet, gw net.IP) {
	four := family == unix.AF_INET
	via, routed := netip.AddrFromSlice(gw)
	via = via.Unmap()
	ones := 0
	if dst != nil {
		ones, _ = dst.Mask.Size()
	}
	if ones == 0 {
		if !slices.ContainsFunc(d.gateways, func(g gateway) bool { return g.four == four }) {
			d.gateways = append(d.gateways, gateway{four, via})
		}
		return
	}
	to, ok := netip.AddrFromSlice(dst.IP)
	to = to.Unmap()
	if prefix := netip.PrefixFrom(to, ones).Masked(); ok && !routed && !to.IsMulticast() && !(to.Is6() && to.IsLinkLocalUnicast()) &&
		!slices.Contains(d.onLink, prefix) {
		d.onLink = append(d.onLink, prefix)
	}
}

// order makes two readings of one state equal.
func (d *device) order() {
	slices.SortStableFunc(d.addresses, func(a, b netip.Prefix) int { return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()) })
	slices.SortFunc(d.gateways, func(a, b gateway) int {
		switch {
		case a.four == b.four:
			return 0
		case a.four:
			return -1
		}
		return 1
	})
	slices.SortFunc(d.onLink, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
}

// close ends await with an error.
func (h *host) close() {
	unix.Shutdown(h.events.GetFd(), unix.SHUT_RDWR)
	h.events.Close()
	h.handle.Close()
}
