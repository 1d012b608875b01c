// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/sysctl"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// Tap is an interface that a stack shares with the host through a device of its own, a tap, or a tun
// where packets have no Ethernet header.
//
//	interface ──► the chain of the stack's table: gives the tap the stack's packets ──► the stack
//	    ▲     └─► the host's firewall and stack: everything else                         │
//	    └──────── the sender (sender.go) ◄───────────────────────────────── the tap ◄────┘
//
// Whoever has a packet socket can send anything, on any interface of the host. So this is for stacks
// of users who may not do that. Whoever has the tap can send what the sender passes, and receives
// what the table gives it, whatever is done with the descriptor.
//
// Limit: what is given to the tap is a copy, so each packet received costs that more than a packet
// socket's.
type Tap struct {
	File *os.File // for a link tap:fd=N or tun:fd=N
	Kind string   // of the plan
	MAC  net.HardwareAddr

	index int
	sides
}

// tapName has the kernel choose a number.
const tapName = tap.Prefix + "-p%d"

// OpenTap opens an interface for a stack with these ports, and no address yet. table is the name of its
// table, and the alias of the tap. What it makes ends with the process, except that who has a tap can make
// it stay, without use: RemoveTaps.
func OpenTap(device string, ports Ports, table string) (*Tap, error) {
	link, err := find(device)
	if err != nil {
		return nil, err
	}
	at := link.Attrs()
	switch {
	case at.Flags&net.FlagLoopback != 0:
		return nil, access.Refuse("%s leads to no network; expected an interface with a way out", device)
	case at.MasterIndex != 0:
		return nil, access.Refuse("%s is a port of a bridge or bond, which has its addresses; expected that one", device)
	}
	t := &Tap{Kind: plan.Tun}
	if raw, err := isRaw(link, device); err != nil {
		return nil, err
	} else if !raw {
		t.Kind, t.MAC = plan.Tap, slices.Clone(at.HardwareAddr)
	}
	if err := CheckOthers(device, false); err != nil {
		return nil, err
	}
	if err := t.open(link, ports, table); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// open closes the tap's way into the host before it is up.
func (t *Tap) open(link netlink.Link, ports Ports, table string) error {
	var err error
	if t.File, err = tap.Open(t.Kind, tapName); err != nil {
		return err
	}
	request, _ := unix.NewIfreq("")
	if err := unix.IoctlIfreq(int(t.File.Fd()), unix.TUNGETIFF, request); err != nil {
		return os.NewSyscallError("TUNGETIFF", err)
	}
	device, err := netlink.LinkByName(request.Name())
	if err != nil {
		return fmt.Errorf("cannot find %s: %w", request.Name(), err)
	}
	t.index = device.Attrs().Index
	if t.filter, err = newSender(link.Attrs().Index, t.MAC); err != nil {
		return err
	}
	if err := t.filter.setPorts(ports); err != nil {
		return err
	}
	if err := t.filter.attachSender(device); err != nil {
		return err
	}
	// The host says nothing there itself.
	if key := "net/ipv6/conf/" + request.Name() + "/disable_ipv6"; sysctl.Host.Has(key) {
		if err := sysctl.Host.Write(key, "1"); err != nil {
			return err
		}
	}
	if err := errors.Join(netlink.LinkSetAlias(device, table), netlink.LinkSetARPOff(device), netlink.LinkSetMTU(device, min(link.Attrs().MTU, plan.KindOf(t.Kind).MTUMost)), netlink.LinkSetUp(device)); err != nil {
		return fmt.Errorf("cannot set up %s: %w", request.Name(), err)
	}
	if t.table, err = newTable(table); err != nil {
		return err
	}
	if !t.table.owned {
		return access.Refuse("uplinks of users take Linux 5.12 on the host, where a table ends with its owner")
	}
	return t.table.addChain(chain{device: link.Attrs().Name, ethernet: t.MAC != nil, ports: ports, to: t.index})
}

// Close gives the interface back, and removes the tap, whoever has it.
func (t *Tap) Close() error {
	var failed []error
	if t.table != nil {
		failed = append(failed, t.table.close())
	}
	if t.File != nil {
		failed = append(failed, t.File.Close())
	}
	if t.index != 0 {
		err := netlink.LinkDel(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Index: t.index}})
		if err != nil && !errors.Is(err, unix.ENODEV) {
			failed = append(failed, fmt.Errorf("cannot remove a tap: %w", err))
		}
	}
	if t.filter != nil {
		t.filter.close()
	}
	return errors.Join(failed...)
}

// RemoveTaps removes those whose alias begins so, after a process that could not.
func RemoveTaps(alias string) error {
	return removeTaps(func(other string) bool { return strings.HasPrefix(other, alias) })
}

// RemoveTapsOf removes those of a stack whose tables have this name and a digit. Another stack's name may begin
// with it.
func RemoveTapsOf(table string) error {
	return removeTaps(func(alias string) bool {
		number, its := strings.CutPrefix(alias, table+"_")
		return its && len(number) == 1 && number[0] >= '0' && number[0] <= '9'
	})
}

func removeTaps(its func(alias string) bool) error {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("cannot list the host's interfaces: %w", err)
	}
	var failed []error
	for _, l := range links {
		if l.Type() == "tuntap" && its(l.Attrs().Alias) {
			failed = append(failed, netlink.LinkDel(l))
		}
	}
	return errors.Join(failed...)
}
