// SPDX-License-Identifier: GPL-2.0-only

package plain

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestWhatATerminalObeysIsQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"web-1 (café) 漢":    "web-1 (café) 漢",
		"a\x1b[2Jb":         `"a\x1b[2Jb"`,
		"a\nguise: forged":  `"a\nguise: forged"`,
		"a\tb":              `"a\tb"`,
		"\u009b2J":          `"\u009b2J"`,
		"gpj.\u202eexe":     `"gpj.\u202eexe"`,
		"\xff\xfe":          `"\xff\xfe"`,
		"a\u00a0b":          `"a\u00a0b"`,
		"zero\u200bwidth":   `"zero\u200bwidth"`,
		"\x7f":              `"\x7f"`,
		"\U000e0041 tagged": `"\U000e0041 tagged"`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := Lines("one\ntwo\x1b[2J\n\tthree"); got != "one\n\"two\\x1b[2J\"\n\tthree" {
		t.Errorf("got %q", got)
	}
}

func TestWordsAreReadByAShellAsTheyAre(t *testing.T) {
	words := []string{"exec", "web", "", "a b", "it's", "$(id)", "\n", "--x=/y,z"}
	text, err := exec.Command("sh", "-c", `printf '%s\0' `+Words(slices.Clone(words)...)).Output()
	if got := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"); err != nil || !slices.Equal(got, words) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestJSONStaysTheSameText(t *testing.T) {
	const text = "a\u009b2J\u202e\x7f\U000e0041é"
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	got := JSON(string(encoded))
	for _, r := range got {
		if obeyed(r) {
			t.Errorf("%q is in %q", r, got)
		}
	}
	var back string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back != text {
		t.Errorf("%q, %v", back, err)
	}
}
