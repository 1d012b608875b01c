// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"guise/internal/nettest"
)

func TestPathRunsWhileItsCommandDoes(t *testing.T) {
	nettest.Namespace(t)
	g := newGuise(t, "path", "--delay", "20ms", "--loss", "0.2%", "--rate", "100mbit", "--delay-back", "5ms", "--seed", "7",
		"tap:left", "tap:right,ip=192.0.2.1/24", "--", "sh", "-c", "ip -o address show dev right; echo $GUISE_STACK$LD_PRELOAD; exit 6")
	g.says(t, 6, "guise: path tap:left - tap:right is ready: delay 20ms, loss 0.2%, rate 100mbit forth; delay 5ms, loss 0.2%, rate 100mbit back\n")
	if !strings.Contains(g.stdout.String(), "192.0.2.1/24") || !strings.HasSuffix(g.stdout.String(), "\n\n") {
		t.Errorf("the command wrote %q", g.stdout.String())
	}
	plan := g.plan(t)
	for _, part := range []string{"link a tap fd=6 offload=off", "link b tap fd=7 offload=off", "bridge br0 a b",
		"qdisc b netem delay 20000us loss 0.2% rate 100000000bit limit 1167 seed 7",
		"qdisc a netem delay 5000us loss 0.2% rate 100000000bit limit 1042 seed 8"} {
		if !strings.Contains(plan, part+"\n") && !strings.Contains(plan, part+" ") {
			t.Errorf("no %q in %s", part, plan)
		}
	}
	if links := nettest.Run(t, "ip", "-o", "link"); strings.Contains(links, "left") || strings.Contains(links, "right") {
		t.Errorf("left behind: %s", links)
	}
}

func TestPathLastsUntilItIsStopped(t *testing.T) {
	nettest.Namespace(t)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		g := newGuise(t, "path", "--delay", "1ms", "--ready-fd", "3", "tap:left", "tap:right")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		g.ExtraFiles = []*os.File{w}
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
		defer g.Process.Kill()
		w.Close()
		if line, err := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
			t.Fatalf("got %q, %v: %s", line, err, g.stderr.String())
		}
		r.Close()
		g.Process.Signal(s)
		g.says(t, 0, "guise: path tap:left - tap:right is ready: delay 1ms, loss 0% each way\n")
		if links := nettest.Run(t, "ip", "-o", "link"); strings.Contains(links, "left") {
			t.Errorf("left behind: %s", links)
		}
	}
}

func TestPathSaysWhenItsHolderIsKilled(t *testing.T) {
	nettest.Namespace(t)
	g := newGuise(t, "path", "--ready-fd", "3", "tap:left", "tap:right")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g.ExtraFiles = []*os.File{w}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	bufio.NewReader(r).ReadString('\n')
	unix.Kill(g.holder(t), unix.SIGKILL)
	g.says(t, 125, "the path did not last", "guise-holder")
	if links := nettest.Run(t, "ip", "-o", "link"); strings.Contains(links, "left") {
		t.Errorf("left behind: %s", links)
	}
}
