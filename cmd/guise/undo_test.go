// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"guise/internal/nettest"
)

// changes is what guise changes on the host, as it stands.
func changes(t *testing.T, g *guise) string {
	t.Helper()
	left, _ := filepath.Glob(g.dir + "/run*")
	return nettest.Run(t, "nft", "list", "tables") + nettest.Run(t, "ip", "-o", "link") +
		nettest.Run(t, "sh", "-c", "grep -r . /proc/sys/net/ipv4/conf/*/forwarding") + strings.Join(left, " ")
}

func routed(t *testing.T) {
	t.Helper()
	nettest.Namespace(t)
	nettest.Run(t, "ip", "link", "add", "up0", "type", "bridge")
	nettest.Run(t, "ip", "address", "add", "192.0.2.7/24", "dev", "up0")
	nettest.Run(t, "ip", "link", "set", "up0", "up")
}

func TestHostIsAsBeforeAfterTheProgram(t *testing.T) {
	routed(t)
	g := newGuise(t, "run", "--", "sh", "-c", "echo; cat")
	before := changes(t, g)
	stdin, err := g.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	started(t, g)
	during := changes(t, g)
	for _, part := range []string{"table ip guise_", "guise0", "up0/forwarding:1", "/run"} {
		if !strings.Contains(during, part) {
			t.Errorf("no %q in %s", part, during)
		}
	}
	stdin.Close()
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	within(t, "the holder ends", func() bool { return ended(g.holder(t)) })
	if after := changes(t, g); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestNextGuiseUndoesWhatAKilledHolderLeft(t *testing.T) {
	routed(t)
	g := newGuise(t, "run", "--", "sh", "-c", "echo; exec sleep 1000")
	before := changes(t, g)
	started(t, g)
	pid := g.holder(t)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, "the holder is dead", func() bool { return ended(pid) })
	g.Process.Kill()
	g.Wait()
	if changes(t, g) == before {
		t.Error("there was nothing left to undo")
	}
	next := newGuise(t, "run", "--link", "none", "--", "true")
	next.Env = append(next.Env, "GUISE_RUNDIR="+g.dir+"/run")
	next.says(t, 0)
	if after := changes(t, g); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestFailureLeavesNothingOnTheHost(t *testing.T) {
	routed(t)
	g := newGuise(t, "run", "--netem", "dealy 1ms", "--", "true")
	before := changes(t, g)
	g.Env = append(g.Env, "FAKE_ERROR=dealy")
	g.says(t, 2, "--netem dealy 1ms: dealy cannot be")
	if after := changes(t, g); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
	g = newGuise(t, "run", "--", "true")
	g.Env = append(g.Env, "GUISE_RUNDIR=/proc/guise")
	g.says(t, 125, "/proc/guise", "nothing was changed")
	if after := changes(t, g); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
}
