// SPDX-License-Identifier: GPL-2.0-only

package main

import "testing"

func TestProgramsAreCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 programs are", 1: "1 program is", 3: "3 programs are"} {
		if got := programsAre(n); got != want {
			t.Errorf("programsAre(%d) = %q, expected %q", n, got, want)
		}
	}
}
