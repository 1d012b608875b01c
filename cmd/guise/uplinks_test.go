// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUplinksOfFlagsAndOfAFileAreTheSame(t *testing.T) {
	g := newGuise(t, "run", "--print-config", "--mptcp", "--uplink", "wlan0,ports=61000-65535,8080", "--uplink", "usb0", "--prefer", "wlan0", "--", "true")
	if status := g.status(t); status != 0 {
		t.Fatalf("status %d: %s", status, g.stderr.String())
	}
	_, flags, _ := strings.Cut(g.stdout.String(), "# The plan")
	for _, want := range []string{"\nfollow ", "\nmptcp limits 8 8\n", "ignore_routes_with_linkdown 1\n", "\nhost host.guise.internal"} {
		if !strings.Contains(flags, want) {
			t.Errorf("no %q in\n%s", want, flags)
		}
	}
	file := filepath.Join(t.TempDir(), "true.toml")
	text := "[mptcp]\nenabled = true\n[[uplink]]\ninterface = \"wlan0\"\nports = [\"61000-65535\", \"8080\"]\nprefer = true\n[[uplink]]\ninterface = \"usb0\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	up := newGuise(t, "up", "--print-plan", file)
	if status := up.status(t); status != 0 {
		t.Fatalf("status %d: %s", status, up.stderr.String())
	}
	_, flags, _ = strings.Cut(flags, "\n")
	if up.stdout.String() != flags {
		t.Errorf("of flags:\n%s\nof a file:\n%s", flags, up.stdout.String())
	}
}

func TestMistakesInUplinksOfAFileAreNamedWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"[[uplink]]\nway = \"own\"\n":                                                      ":1: uplink.0: has no interface",
		"[[uplink]]\ninterface = \"x\"\nway = \"onw\"\n":                                   ":3: uplink.0.way: unknown value \"onw\"; did you mean own?",
		"[[uplink]]\ninterface = \"x\"\nendpoint = [\"backip\"]\n":                         "did you mean backup?",
		"[[uplink]]\ninterface = \"x\"\nports = [\"9-8\"]\n":                               ":3: uplink.0.ports: ",
		"[[uplink]]\ninterface = \"x\"\nbudget = \"much\"\n":                               ":3: uplink.0.budget: ",
		"[[uplink]]\ninterface = \"x\"\n[[uplink]]\ninterface = \"x\"\n":                   "named twice",
		"[[uplink]]\ninterface = \"x\"\n[[link]]\nkind = \"tap\"\n":                        "exclude each other",
		"netem = \"delay 1ms\"\n[[uplink]]\ninterface = \"x\"\n":                           "impairs links",
		"[[uplink]]\ninterface = \"x\"\n[[route]]\nto = \"10.0.0.0/8\"\nlink = \"eth0\"\n": "valid are lo, x",
	} {
		file := filepath.Join(t.TempDir(), "x.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		newGuise(t, "up", "--print-plan", file).says(t, statusUsage, want)
	}
}
