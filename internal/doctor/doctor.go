// SPDX-License-Identifier: GPL-2.0-only

// Package doctor finds what this machine allows guise, and what a run would get.
//
// Where a test changes nothing, it does what a run would do: it opens the device of
// taps, starts and ends passt, reserves the memory of a stack and gives it back.
// Sysctls and the firewall are only read. A finding is one sentence, and what to do
// if something can be done.
package doctor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/access"
	"guise/internal/hostnet/setup"
	"guise/internal/plan"
)

// The statuses of a finding.
const (
	OK   = "ok"   // as it should be
	Note = "note" // works, except for a part
	Bad  = "bad"  // a run without flags fails because of it
)

// Finding is the result of looking at one thing.
type Finding struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do
}

// Report has all findings.
type Report struct {
	Version  int       `json:"version"`
	Works    bool      `json:"works"` // whether guise run without flags does
	Way      string    `json:"way"`   // tap, setup, passt, or none
	Text     string    `json:"text"`  // what a run without flags would get
	Findings []Finding `json:"findings"`
}

// Ways out, beside plan.Passt.
const (
	wayTap   = "tap"   // made for each run
	waySetup = "setup" // root set it up for this user
	wayNone  = "none"
)

type examination struct {
	Report
	taps []string // of this user's own
}

func (e *examination) find(name, status, next, text string, args ...any) {
	e.Findings = append(e.Findings, Finding{name, status, fmt.Sprintf(text, args...), next})
}

// Examine looks at everything.
func Examine() (*Report, error) {
	e := &examination{}
	e.Version = 1
	kind, taps, err := hostnet.DefaultWay()
	if err != nil {
		return nil, err
	}
	e.taps = taps
	switch {
	case kind == plan.Passt:
		e.Way = plan.Passt
	case len(taps) > 0:
		e.Way = waySetup
	default:
		e.Way = wayTap
	}
	e.parts()
	e.user()
	e.memory()
	e.kernel()
	e.tun()
	e.setup()
	e.passt()
	e.firewall()
	e.advertisements()
	e.uplinks()
	e.tracing()
	e.isolation()
	e.conclude()
	return &e.Report, nil
}

func (e *examination) conclude() {
	e.Works = true
	for _, f := range e.Findings {
		if f.Status == Bad {
			e.Works = false
		}
	}
	switch {
	case !e.Works:
		e.Way = wayNone
		e.Text = "guise run without flags fails; what is bad above says why"
	case e.Way == wayTap:
		e.Text = "guise run without flags makes a tap: the stack's own TCP is on the wire"
	case e.Way == waySetup:
		e.Text = fmt.Sprintf("guise run without flags takes %s: the stack's own TCP is on the wire, without root", e.taps[0])
	default:
		e.Text = "guise run without flags goes out through passt: the stack's own TCP ends there, and only what -p publishes comes in"
	}
}

func (e *examination) parts() {
	for _, part := range []string{holder.Program, holder.Preload, holder.Kernel} {
		if _, err := holder.Find(part); err != nil && (part != holder.Kernel || os.Getenv("GUISE_KERNEL") == "") {
			e.find("parts", Bad, "make", "%v", err)
			return
		}
	}
	e.find("parts", OK, "", "holder, preload library and kernel image are there")
}

func (e *examination) user() {
	switch {
	case access.Capability(unix.CAP_NET_ADMIN):
		e.find("user", OK, "", "user %d has CAP_NET_ADMIN: guise makes a tap for each run, and undoes it", os.Geteuid())
	case len(e.taps) > 0:
		e.find("user", OK, "", "user %d has no CAP_NET_ADMIN, and needs none: root has set up a tap", os.Geteuid())
	default:
		e.find("user", Note, "sudo guise setup, once, gives this user TCP on the wire",
			"user %d has no CAP_NET_ADMIN, and no tap", os.Geteuid())
	}
}

// tun checks the device by which taps are opened. Opening it makes no tap.
func (e *examination) tun() {
	severity := Bad
	if e.Way == plan.Passt {
		severity = Note
	}
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		unix.Close(fd)
		e.find("tun", OK, "", "%s can be opened", path)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		e.find("tun", severity, "sudo guise setup opens it to all users, as distributions have it: each user still opens only taps made for that user",
			"%s is root's only, so this user can open no tap, not even one that guise setup made", path)
	default:
		e.find("tun", severity, "modprobe tun, or in a container --device /dev/net/tun; --link passt does without",
			"%s is not there (%v), so there can be no tap", path, err)
	}
}

// setup looks for taps that root has made for this user and that are gone.
func (e *examination) setup() {
	there := map[string]bool{}
	for _, name := range e.taps {
		there[name] = true
	}
	for _, name := range setup.Listed() {
		if !there[name] {
			e.find("setup", Note, "sudo /etc/guise/forward start", "root has set up the tap %s for this user, and it is gone", name)
		}
	}
}
