// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"testing"

	"guise/internal/plan"
)

func TestEachKindOfLinkHasAnOpener(t *testing.T) {
	for _, k := range plan.Kinds {
		if openers[k.Name] == nil {
			t.Errorf("nothing opens a link of kind %s", k.Name)
		}
	}
	if len(openers) != len(plan.Kinds) {
		t.Errorf("%d openers for %d kinds", len(openers), len(plan.Kinds))
	}
}
