// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"regexp"
	"testing"
)

func TestWordsOfOtherToolsAreAnswered(t *testing.T) {
	for word, part := range map[string]string{
		"list": "guise ls", "status": "guise ls", "ps": "guise ls", "inspect": "guise ls --json",
		"stop": "guise down STACK", "rm": "guise down STACK", "kill": "guise down STACK",
		"start": "guise up FILE", "create": "guise run -- CMD", "restart": "guise upgrade STACK",
		"attach": "guise exec STACK -- TOOL", "strace": "guise detach PID", "gdb": "guise detach PID",
		"ss": "guise exec STACK", "version": "guise --version", "mptcp": "guise check-mptcp HOST",
		"dwon": "did you mean down?", "true": "guise run -- true", "frobnicate": "valid are bench, capture, ",
	} {
		newGuise(t, word).says(t, 2, `unknown command "`+word+`"; `, part)
		newGuise(t, word, "--force", "web").says(t, 2, `unknown command "`+word+`"; `, part)
	}
}

// What a hint names is there, and no word of another tool is a command of guise.
func TestHintsNameCommandsThatAreThere(t *testing.T) {
	root := newRoot()
	commands := map[string]bool{}
	for _, c := range root.Commands() {
		commands[c.Name()] = true
	}
	named := regexp.MustCompile(`guise ([a-z][a-z-]*)`)
	for _, other := range otherWords {
		for _, found := range named.FindAllStringSubmatch(other.hint, -1) {
			if !commands[found[1]] {
				t.Errorf("%q: there is no %s", other.hint, found[0])
			}
		}
		for _, word := range other.words {
			if commands[word] {
				t.Errorf("%s is a command", word)
			}
		}
	}
}
