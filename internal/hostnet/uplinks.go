// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/share"
	"guise/internal/plan"
)

// What is done on the host for a stack with uplinks before it starts: it gets a journal, and ports of the
// host if it shares addresses. All else is done by the process that follows the host (internal/uplink),
// which adds to the journal what does not end with the stack by itself.

// MayUplink refuses uplinks to who may not have them.
func MayUplink(uplinks []*plan.Uplink) error {
	type right struct {
		number int
		name   string
	}
	for _, u := range uplinks {
		rights := []right{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_NET_RAW, "CAP_NET_RAW"}}
		if u.Way == plan.Own {
			rights = []right{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_MKNOD, "CAP_MKNOD"}}
		}
		for _, r := range rights {
			if !access.Capability(r.number) {
				return access.Refuse("%s: to make an interface of the host an uplink takes %s, which you do not have; use sudo "+
					"(with --user NAME the stack is still that user's), %sor leave --uplink out for a way out without", u.Origin(), r.name, once(u))
			}
		}
	}
	return nil
}

// once says what root can do once, so that a user may have the uplink.
func once(u *plan.Uplink) string {
	if u.Way != plan.Share || u.Name == "" {
		return ""
	}
	return fmt.Sprintf("or have root set it up for you once (sudo guise setup --uplink %s), ", u.Name)
}

// PrepareUplinks makes the host ready for a stack with these uplinks. id names the changes. It returns the
// stack's ports, or none if it shares no address. When it fails, it has undone everything. ending reports
// whether a stack of this user's is ending: its ports are waited for.
func PrepareUplinks(id string, uplinks []*plan.Uplink, ending func() bool) (h *Host, ports share.Ports, err error) {
	if err := MayUplink(uplinks); err != nil {
		return nil, nil, err
	}
	want, shares := plan.SharedPorts(uplinks)
	if len(want) > 0 {
		AwaitStacks(ending, func() bool { return share.Taken(plan.FormatPorts(want)) })
	}
	return reservePorts(id, plan.FormatPorts(want), shares, false)
}

// ReservePorts reserves ports for a stack of a user who has no rights for that (share.ReserveForUser).
func ReservePorts(id, want string) (*Host, share.Ports, error) {
	return reservePorts(id, want, true, true)
}

func reservePorts(id, want string, shares, user bool) (h *Host, ports share.Ports, err error) {
	h = &Host{}
	l, err := journal.Lock()
	if err != nil {
		return nil, nil, err
	}
	defer l.Unlock()
	if h.journal, err = l.New(id); err != nil {
		return nil, nil, err
	}
	if err := l.Save(h.journal); err != nil {
		return nil, nil, fmt.Errorf("%w; nothing was changed", err)
	}
	if !shares {
		return h, nil, nil
	}
	noted, take := share.Noted{Folder: l, Journal: h.journal}, share.Reserve
	if user {
		take = share.ReserveForUser
	}
	ports, err = take(noted, want)
	if err != nil {
		return nil, nil, errors.Join(err, undo(l, h.journal))
	}
	return h, ports, nil
}
