// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// The numbers of guise's own descriptors are libguise's.
func TestOwnDescriptorsAreThoseOfLibguise(t *testing.T) {
	text, err := os.ReadFile("../../lib/host/fd.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int{"FD_TOP": ownTop, "FD_ROOM": ownRoom} {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^#define %s +%d\b`, name, value))
		if !line.Match(text) {
			t.Errorf("lib/host/fd.c does not say that %s is %d", name, value)
		}
	}
}
