// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"guise/internal/plan"
)

func TestHelpFitsIntoATerminal(t *testing.T) {
	commands := []string{"", "help"}
	for _, c := range newRoot().Commands() {
		if !c.DisableFlagParsing { // else its help is another program's
			commands = append(commands, c.Name())
		}
	}
	for _, command := range commands {
		words := append(strings.Fields(command), "--help")
		g := newGuise(t, words...)
		if status := g.status(t); status != 0 {
			t.Errorf("%q: status %d: %s", words, status, g.stderr.String())
		}
		for line := range strings.Lines(g.stdout.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%q: a line of %d columns: %s", words, n, line)
			}
		}
	}
}

func TestHelpAndVersionNameEachFormOfALink(t *testing.T) {
	for _, words := range [][]string{{"run", "--help"}, {"--version"}} {
		g := newGuise(t, words...)
		if status := g.status(t); status != 0 {
			t.Fatalf("%q: status %d: %s", words, status, g.stderr.String())
		}
		said := strings.FieldsFunc(g.stdout.String(), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;()", r) })
		for _, form := range plan.LinkForms() {
			if !slices.Contains(said, form) {
				t.Errorf("%q says nothing of %s", words, form)
			}
		}
	}
}

func TestParagraphsStayApart(t *testing.T) {
	long := strings.Repeat("word ", 30)
	got := flow("one\ntwo\n\n" + long)
	if want := "one two\n\n" + strings.TrimSpace(strings.Repeat("word ", 20)) + "\n" + strings.TrimSpace(strings.Repeat("word ", 10)); got != want {
		t.Errorf("got %q", got)
	}
}
