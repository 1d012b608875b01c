// SPDX-License-Identifier: GPL-2.0-only

package suggest

import (
	"slices"
	"testing"
)

func TestNearFindsTypingMistakes(t *testing.T) {
	valid := []string{"cubic", "reno", "westwood", "vegas", "veno", "bic"}
	for word, want := range map[string][]string{
		"westwod":  {"westwood"},
		"wetswood": {"westwood"},
		"Cubic":    {"cubic"},
		"quantum":  nil,
		"ven":      {"veno"},
	} {
		if got := Near(word, valid); !slices.Equal(got, want) {
			t.Errorf("Near(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestHintNamesAllWhenNothingIsNear(t *testing.T) {
	if got, want := Hint("quantum", []string{"reno", "bic"}), "valid are reno, bic"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Hint("rano", []string{"reno", "bic"}), "did you mean reno?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
