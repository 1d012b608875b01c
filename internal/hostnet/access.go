// SPDX-License-Identifier: GPL-2.0-only

// Package hostnet prepares the host for a stack, and undoes what it did.
//
// A stack that hangs on a tap needs the host to be its router: a free private
// subnet between the two, forwarding between the tap and the host's other
// interfaces, and translation of the stack's addresses on the way out. All of
// it lives as long as the stack: Prepare makes it and notes it in a journal
// first, Undo and Sweep take it back.
package hostnet

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Refusal is an error that the user can mend by asking for something else.
type Refusal struct{ error }

func (r Refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error {
	return Refusal{fmt.Errorf(format, args...)}
}

// Capability says whether this thread has the capability (unix.CAP_...).
func Capability(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}
