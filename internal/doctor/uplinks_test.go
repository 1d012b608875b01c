// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"os"
	"strings"
	"testing"
)

// A run without flags does not need uplinks, so what they lack is never bad.
func TestUplinksAreANoteAtMost(t *testing.T) {
	e := &examination{}
	e.uplinks()
	if len(e.Findings) != 1 || e.Findings[0].Name != "uplinks" || e.Findings[0].Status == Bad {
		t.Fatalf("found %+v", e.Findings)
	}
	if f := e.Findings[0]; f.Status == Note && f.Next == "" || os.Geteuid() != 0 && !strings.Contains(f.Text, "CAP_NET_ADMIN") {
		t.Errorf("found %+v", f)
	}
}
