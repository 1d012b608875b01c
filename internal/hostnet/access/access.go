// SPDX-License-Identifier: GPL-2.0-only

// Package access has what this user may do to the host, and the error for what
// the user may not.
package access

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Refusal is an error that does not occur if the user asks for something else.
type Refusal struct{ error }

func (r Refusal) Unwrap() error { return r.error }

// Refuse returns a Refusal with this sentence.
func Refuse(format string, args ...any) error {
	return Refusal{fmt.Errorf(format, args...)}
}

// Capability reports whether this thread has the capability (unix.CAP_...).
func Capability(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}
