// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/passt"
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// A user who names no link gets the best way out that this user may have:
//
//	CAP_NET_ADMIN			a tap that guise makes, and removes at the end
//	a tap of `guise setup`		that tap, without any privilege
//	neither				passt, which opens sockets of the host: the
//					stack's TCP ends there
//
// There is no fourth way: without passt there is an error, and the program never
// runs on the host's own stack. A tap is for one stack at a time. When other stacks
// use all taps of this user, the way is passt, too, and guise says so.

// ownTap is a tap that root has set up for this user, and its network.
type ownTap struct {
	name  string
	hosts []netip.Prefix
	mtu   int
}

// choose sets the kind of a link if the user named none. If the user has taps of
// `guise setup`, it is the first; all are returned, for the case that it is in use.
func choose(links []*plan.Link) ([]ownTap, error) {
	if len(links) != 1 || links[0].Kind != "" {
		return nil, nil
	}
	l := links[0]
	if access.Capability(unix.CAP_NET_ADMIN) {
		l.Kind, l.Flag = plan.Tap, "--link tap"
		return nil, nil
	}
	own, err := OwnTaps()
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		own[0].assign(l)
		return own, nil
	}
	l.Kind, l.Flag = plan.Passt, "--link passt"
	return nil, nil
}

// OwnTaps are the taps that `guise setup` made for this user.
func OwnTaps() ([]ownTap, error) {
	devices, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's interfaces: %w", err)
	}
	var own []ownTap
	for _, d := range devices {
		device, ok := d.(*netlink.Tuntap)
		if !ok || device.NonPersist || device.Owner == 0 || device.Owner != uint32(os.Geteuid()) || !strings.HasPrefix(device.Name, tap.SetupPrefix) {
			continue
		}
		addresses, err := netlink.AddrList(d, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("cannot list the addresses of %s: %w", device.Name, err)
		}
		found := ownTap{name: device.Name, mtu: device.MTU}
		for _, a := range addresses {
			if addr, ok := netip.AddrFromSlice(a.IP); ok && a.Scope == unix.RT_SCOPE_UNIVERSE {
				ones, _ := a.Mask.Size()
				found.hosts = append(found.hosts, netip.PrefixFrom(addr.Unmap(), ones))
			}
		}
		own = append(own, found)
	}
	slices.SortFunc(own, func(a, b ownTap) int { return strings.Compare(a.name, b.name) })
	return own, nil
}

// assign gives a link this tap. If the user named no address, the link gets the one
// beside the host's.
func (o ownTap) assign(l *plan.Link) {
	l.Kind, l.Device, l.Flag = plan.Tap, o.name, "--link tap:"+o.name
	if len(l.Addresses) > 0 {
		return
	}
	if o.mtu != plan.KindOf(plan.Tap).MTU && l.MTU == 0 {
		l.MTU = o.mtu
	}
	l.Gateways = nil
	for _, host := range o.hosts {
		stack, err := survey.Opposite(host, nil)
		if err != nil {
			continue // the network has no address beside the host's
		}
		l.Addresses = append(l.Addresses, stack)
		l.Gateways = append(l.Gateways, host.Addr())
	}
}

// openOwn opens the first of the user's taps that no other stack has, or else a passt.
// ending reports whether a stack is about to end, so that its tap will soon be free.
func (h *Host) openOwn(l *plan.Link, ending func() bool) (*os.File, error) {
	err := checkOwners(&h.asked)
	if err != nil {
		return nil, err
	}
	var file *os.File
	patiently(func() bool {
		soon := ending() // before the taps are tried, or a stack could end unseen in between
		for _, o := range h.own {
			if file, err = tap.Open(plan.Tap, o.name); !tap.IsBusy(err) {
				*l = h.asked
				o.assign(l)
				return true
			}
		}
		return !soon
	})
	if !tap.IsBusy(err) {
		return file, err
	}
	return h.openBesideOwn(l)
}

// openBesideOwn opens a passt for a link whose taps are all in use.
func (h *Host) openBesideOwn(l *plan.Link) (*os.File, error) {
	var names []string
	for _, o := range h.own {
		names = append(names, o.name)
	}
	busy := fmt.Sprintf("your stacks use all taps that root has set up for you (%s)", strings.Join(names, ", "))
	another := fmt.Sprintf("sudo guise setup --user %d --taps %d", os.Geteuid(), len(names)+1)
	*l = h.asked
	l.Kind, l.Flag = plan.Passt, "--link passt"
	links := []*plan.Link{l}
	err := checkPasst(links)
	var file *os.File
	if err == nil {
		file, err = passt.Start(l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: end one, or have root add another (%s); nor is there a way beside them: %w", busy, another, err)
	}
	h.Notes = append(h.Notes, fmt.Sprintf("%s, so this one goes out through passt, where its TCP ends; root adds another tap by `%s`",
		busy, another))
	return file, nil
}

// DefaultWay is the way out that a run without flags would try, and the taps
// that root has set up for this user.
func DefaultWay() (kind string, taps []string, err error) {
	l := &plan.Link{}
	own, err := choose([]*plan.Link{l})
	for _, o := range own {
		taps = append(taps, o.name)
	}
	return l.Kind, taps, err
}

// Ours reports whether the other end of a link is one that guise makes, or that guise setup has
// made: the host, or passt; or it is the host's own way out, by the host's own address. On any other
// link is a network of the user's.
func Ours(l *plan.Link) bool {
	switch l.Kind {
	case "", plan.Passt:
		return true
	case plan.Packet:
		return l.Ports != ""
	case plan.Tap:
		return l.Auto() || strings.HasPrefix(l.Device, tap.SetupPrefix)
	}
	return false
}

// OnlyTap is the tap that a run without flags takes, if root has set up exactly one for this
// user; otherwise it is empty.
func OnlyTap() string {
	if _, taps, err := DefaultWay(); err == nil && len(taps) == 1 {
		return taps[0]
	}
	return ""
}
