// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"strings"
	"testing"

	"guise/internal/hostnet/passt"
)

func TestSmallQueueToPasstIsSaid(t *testing.T) {
	for queue, said := range map[int]bool{4608: true, usualQueue - 1: true, usualQueue: false, 4 << 20: false} {
		e := &examination{}
		e.passtQueue(queue)
		if got := len(e.Findings) == 1 && strings.Contains(e.Findings[0].Text, "net.core.wmem_max is"); got != said {
			t.Errorf("%d: %v", queue, e.Findings)
		}
	}
	// What a kernel grants twice is not taken for twice as much.
	if queue, err := passt.Queue(); err != nil || queue > 4<<20 {
		t.Errorf("got %d, %v", queue, err)
	}
}
