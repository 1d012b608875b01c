// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Not on a stack, which moves: what is handed to all threads is a number to Go.
var (
	capabilityHeader = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	capabilityData   [2]unix.CapUserData
)

// setCapabilities leaves these, as far as there are any.
func setCapabilities(every func(number uintptr, args ...uintptr) error, mask uint64) error {
	header, data := &capabilityHeader, &capabilityData
	if err := unix.Capget(header, &data[0]); err != nil {
		return fmt.Errorf("cannot read the capabilities: %w", err)
	}
	for i := range data {
		word := uint32(mask >> (32 * i))
		data[i].Permitted &= word
		data[i].Effective = data[i].Permitted
		data[i].Inheritable = 0
	}
	err := every(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
	if err != nil {
		return fmt.Errorf("cannot give up capabilities: %w", err)
	}
	return nil
}
