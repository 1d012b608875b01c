// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Every command and flag is in the man page. (test/image looks for the congestion controls.)
func TestManualIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/guise.1")
	if err != nil {
		t.Fatal(err)
	}
	manual := strings.ReplaceAll(string(text), `\-`, "-")
	want := func(what, part string) {
		if !strings.Contains(manual, part) {
			t.Errorf("docs/guise.1 has no %s %q", what, part)
		}
	}
	root := newRoot()
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		want("command", ".SS guise "+c.Name())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { want("flag", "--"+f.Name) })
	}
}
