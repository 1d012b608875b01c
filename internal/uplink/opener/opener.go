// SPDX-License-Identifier: GPL-2.0-only

// Package opener opens uplinks for users who have no rights for that.
//
// Root says once who may use which interfaces (guise setup --uplink), in /etc/guise/uplinks. A service for
// each such user waits on a socket that only this user may open. A connection to it is a stack's: guise run
// makes it, and hands it to the stack's holder, which keeps it as long as the stack lives, and to what
// follows the host's interfaces, which runs with the user's rights.
//
//	guise run, guise follow-uplinks        guise serve-uplinks UID
//	        (the user's rights)      ────► (root's user id, CAP_NET_ADMIN and CAP_BPF)
//	  ports, open, addresses, close  ◄──── a tap for each uplink
//
// The service does four things, and reads nothing but the requests for them. A request is one packet of
// text (request.go), of that user: SO_PEERCRED. It is answered by "SEQ ok ..." or "SEQ no SENTENCE".
//
//	SEQ ports [LIST]         reserves ports of the host, once; answer: the ports
//	SEQ open IFNAME          a tap or tun through which the stack shares the interface
//	                         (share/tap.go); answer: its kind and the MAC address to use, with the
//	                         descriptor. It takes the place of an earlier one
//	SEQ addresses IFNAME A.. those of the interface that the stack has; others than the host's own
//	                         count only once the host has them
//	SEQ close IFNAME
//
// What it believes of the user: nothing. It opens no path that a request names. Names are those of
// /etc/guise/uplinks, which is read for each "open", addresses those of the host, ports at least 1024, not
// reserved and not in use. A user has mostStacks stacks with mostPorts ports, and makes perSecond
// requests, and fewer that are refused ports, for which the lock of root's journals is taken; each answer
// has a deadline, and so has the first request.
//
// When the connection ends, however that happens, all that was made for it goes: taps, whoever has their
// descriptors, tables, and the reservation of the ports. If the service is killed, tables end with it, and
// what is written to a tap goes nowhere (share/sender.go); the reservation is taken back by the next
// service of that user, or the next guise command of root, and a tap that its user made stay by the former.
package opener

import (
	"errors"
	"fmt"
	"time"
)

// Command is the first argument of guise when it is the service; the second is the user's id.
const Command = "serve-uplinks"

// Folder has the sockets, one for each user, whose name is the user's id.
const Folder = "/run/guise-uplink"

// Socket is the path of a user's.
func Socket(uid int) string { return fmt.Sprintf("%s/%d", Folder, uid) }

const (
	mostMessage   = 4096
	mostAddresses = 64
	mostRanges    = 64
	leastPort     = 1024

	mostConnections = 16
	mostStacks      = 8
	mostPorts       = 16384
	mostTaps        = 8 // of a stack

	perSecond = 50 // requests of a user
	burst     = 200

	refusedPause = 100 * time.Millisecond // after a request for ports that was refused

	firstTime  = 10 * time.Second // until a connection is a stack's
	answerTime = 5 * time.Second
	idleTime   = time.Minute // then a service that systemd started ends
)

// ErrNone says that root has set up nothing for this user.
var ErrNone = errors.New("no uplinks are set up for this user")
