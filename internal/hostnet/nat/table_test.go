// SPDX-License-Identifier: GPL-2.0-only

package nat

import (
	"testing"

	"guise/internal/nettest"
)

func TestDeletingATableTwice(t *testing.T) {
	nettest.Namespace(t)
	if err := Delete("ip", "guise_none"); err != nil {
		t.Error(err)
	}
	if err := Delete("arp", "guise_none"); err == nil {
		t.Error("a family that guise never makes was taken")
	}
}
