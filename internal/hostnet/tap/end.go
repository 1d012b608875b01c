// SPDX-License-Identifier: GPL-2.0-only

package tap

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/netns"
	"guise/internal/plan"
)

// OpenEnd makes the tap at one end of a path, brings it up and gives it its
// addresses. A tap that exists is used as it is. No journal is needed: the kernel
// removes what was made here with the last copy of the descriptor.
func OpenEnd(e plan.End, mtu int) (tap *os.File, err error) {
	open := func() error {
		tap, err = openEnd(e, mtu)
		return err
	}
	if e.Namespace == "" {
		err = open()
	} else {
		err = inNamed(e.Namespace, open)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	return tap, nil
}

func inNamed(name string, f func() error) error {
	namespace, err := netns.Open(name)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if !access.Capability(unix.CAP_SYS_ADMIN) {
		return access.Refuse("to enter a network namespace takes CAP_SYS_ADMIN, which you do not have; use sudo, " +
			"or taps of your own in this namespace (tap:IFNAME)")
	}
	return netns.Run(namespace, f)
}

func openEnd(e plan.End, mtu int) (*os.File, error) {
	_, missing := netlink.LinkByName(e.Device)
	if missing == nil && len(e.Addresses) > 0 {
		return nil, access.Refuse("%s exists already and would keep the addresses; add them yourself (ip address add), "+
			"or name a tap that is still to be made", e.Device)
	}
	tap, err := Open(plan.Tap, e.Device)
	if err != nil || missing == nil {
		return tap, err
	}
	if err := configureEnd(e, mtu); err != nil {
		tap.Close()
		return nil, err
	}
	return tap, nil
}

func configureEnd(e plan.End, mtu int) error {
	device, err := BringUp(e.Device)
	if err != nil {
		return err
	}
	if mtu != 0 {
		if err := netlink.LinkSetMTU(device, mtu); err != nil {
			return fmt.Errorf("cannot give it an MTU of %d: %w", mtu, err)
		}
	}
	for _, a := range e.Addresses {
		if err := AddAddress(device, a); err != nil {
			return err
		}
	}
	return nil
}
