// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"strings"
	"testing"
)

func TestWhatCannotBeGivenUpIsSaid(t *testing.T) {
	for _, c := range []struct {
		left   []string
		status string
		part   string
	}{
		{nil, OK, "no capabilities, no files, and few system calls"},
		{[]string{"calls"}, Note, "may make all system calls: the host refuses seccomp filters"},
		{[]string{"files"}, Note, "sees the host's files"},
		{[]string{"namespaces", "files"}, Note, "sees the host's files"},
		{[]string{"namespaces", "files", "calls"}, Note, "neither namespaces nor seccomp filters"},
	} {
		var e examination
		e.judgeIsolation(c.left)
		f := e.Findings[0]
		if f.Status != c.status || !strings.Contains(f.Text, c.part) || (f.Next == "") != (c.status == OK) {
			t.Errorf("%v: %+v", c.left, f)
		}
	}
}
