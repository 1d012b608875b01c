// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// occupy takes all addresses from one place on, and gives them back after the test.
func occupy(t *testing.T, place int) {
	t.Helper()
	at := uintptr(highPlaces + place*placeStride)
	bytes := uintptr((places - place) * placeStride)
	got, _, errno := unix.Syscall6(unix.SYS_MMAP, at, bytes, unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 || got != at {
		t.Fatalf("mmap at %#x: %#x, %v", at, got, errno)
	}
	t.Cleanup(func() { unix.Syscall(unix.SYS_MUNMAP, at, bytes, 0) })
}

func TestTakenAddressesAreFound(t *testing.T) {
	for _, c := range []struct {
		taken        int // from this place on
		status, text string
	}{
		{places, OK, "the addresses of a stack are free"},
		{3, OK, "3 of 64 addresses for a stack are free"},
		{0, Bad, "none of the addresses of a stack is free (file exists)"},
	} {
		t.Run(c.text, func(t *testing.T) {
			if c.taken < places {
				occupy(t, c.taken)
			}
			var e examination
			e.memory()
			if f := e.Findings[0]; f.Name != "memory" || f.Status != c.status || !strings.HasPrefix(f.Text, c.text) ||
				(f.Status == Bad) != strings.Contains(f.Next, "without what is loaded into each process") {
				t.Errorf("got %+v", f)
			}
		})
	}
}
