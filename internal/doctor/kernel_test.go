// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"fmt"
	"os"
	"regexp"
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

// The addresses and the size of a region are libguise's.
func TestPlacesAreThoseOfLibguise(t *testing.T) {
	for _, c := range []struct {
		file, name, value string
	}{
		{"lib/region/create.c", "BASE_HIGH", fmt.Sprintf("%#xull", highPlaces)},
		{"lib/region/create.c", "BASE_LOW", fmt.Sprintf("%#xull", lowPlaces)},
		{"lib/region/create.c", "BASE_WINDOW", fmt.Sprintf("%#xull", int64(placeStride))},
		{"lib/region/create.c", "BASE_COUNT", fmt.Sprint(places)},
		{"lib/region/create.c", "MEMORY_USUAL", `\(256ull << 20\)`},
		{"include/guise/layout.h", "GUISE_OFF_ARENA", fmt.Sprintf("%#x", placeBytes-256<<20)},
		{"include/guise/layout.h", "GUISE_HOST_PAGE_MAX", fmt.Sprintf("%#x", pageMost)},
	} {
		text, err := os.ReadFile("../../" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^#define %s +%s(\s|$)`, c.name, c.value))
		if !line.Match(text) {
			t.Errorf("%s does not say that %s is %s", c.file, c.name, c.value)
		}
	}
}

func TestTakenAddressesAreFound(t *testing.T) {
	for _, c := range []struct {
		taken        int // from this place on
		status, text string
	}{
		{places, OK, "the addresses of a stack are free"},
		{3, OK, "3 of 64 addresses that were tried for a stack are free"},
		{0, Bad, "none of the addresses that were tried for a stack is free (file exists)"},
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
