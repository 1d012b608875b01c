// SPDX-License-Identifier: GPL-2.0-only

// Package setup is `guise setup`: root makes taps for a user once, and from then on
// the TCP of that user's stacks is on the wire without root. Or root lets a user share
// interfaces of the host (uplinks.go).
package setup

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
)

// Setup makes persistent taps for a user, and has the host forward and translate
// for them, after a reboot as well.
//
// Two files are enough for this. /etc/guise/taps lists the taps of all users.
// /etc/guise/forward is a script that makes these taps and everything for them,
// and undoes that. It is run at once, and at each boot by a unit of systemd, or by
// an init script on hosts with update-rc.d. It does not need guise, so that root
// runs no program that is in a user's folder.
type Setup struct {
	User   string // a login or a number; "": the user who called sudo
	Taps   int    // 0: one, or as many as the user has
	Undo   bool   // for that user; for all if no user is known
	DryRun bool
	Out    io.Writer

	// Uplinks are interfaces that the user may share. With them there are no taps, unless Taps
	// says so; with Undo they are all that is undone.
	Uplinks []string
}

//go:embed forward
var forwardScript string

const (
	directory   = "/etc/guise"
	tapsFile    = directory + "/taps"
	forwardFile = directory + "/forward"
	unitFile    = "/etc/systemd/system/guise-setup.service"
	wantedFile  = "/etc/systemd/system/multi-user.target.wants/guise-setup.service"
	initFile    = "/etc/init.d/guise-setup"

	// MostTaps is how many one user may have.
	MostTaps = 16
)

const unitText = `# SPDX-License-Identifier: GPL-2.0-only
# Written by guise setup; guise setup --undo removes it.
[Unit]
Description=Taps and forwarding for users of guise
After=network.target systemd-sysctl.service nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + forwardFile + ` start
ExecReload=` + forwardFile + ` start
ExecStop=` + forwardFile + ` stop

[Install]
WantedBy=multi-user.target
`

// owner finds the user; -1: none was named.
func (s *Setup) owner() (uid int, name string, err error) {
	name = s.User
	if name == "" {
		name = os.Getenv("SUDO_USER")
	}
	if name == "" || name == "root" && s.User == "" {
		return -1, "", nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		if n, e := strconv.ParseUint(name, 10, 31); e == nil {
			return int(n), name, nil
		}
		return -1, "", access.Refuse("--user %s: this host has no such user; expected a login or a user id", name)
	}
	uid, err = strconv.Atoi(found.Uid)
	return uid, name, err
}

// Do sets everything up, or undoes it.
func (s *Setup) Do() error {
	uid, name, err := s.owner()
	switch {
	case err != nil:
		return err
	case uid < 0 && !s.Undo && os.Getenv("SUDO_USER") == "root":
		s.say("root needs nothing set up: a tap is made for each run; --user NAME sets up another user's")
		return nil
	case uid < 0 && !s.Undo:
		return access.Refuse("no user is named; expected --user NAME, or to be called by sudo")
	case uid == 0:
		return access.Refuse("root needs nothing set up: a tap is made for each run; expected --user NAME of another user")
	case !s.DryRun && (os.Geteuid() != 0 || !access.Capability(unix.CAP_NET_ADMIN)):
		return access.Refuse("to set up taps or uplinks for a user changes the host, and takes root: sudo guise setup; --dry-run prints what it would do")
	}
	if err := s.parseUplinks(); err != nil {
		return err
	}
	changed := false
	if s.Undo || len(s.Uplinks) > 0 {
		if changed, err = s.doUplinks(uid, name); err != nil || len(s.Uplinks) > 0 && s.Taps == 0 {
			return err
		}
	}
	before, err := readTaps()
	if err != nil {
		return err
	}
	if changed && len(before) == 0 && s.Undo {
		return nil
	}
	after, err := s.wanted(before, uid)
	if err != nil {
		return err
	}
	for _, t := range before {
		if !slices.Contains(after, t) {
			s.say("- tap %s of user %d (%s)", t.name, t.uid, t.four)
		}
	}
	for _, t := range after {
		if t.uid != uid {
			continue
		}
		sign := "+"
		if slices.Contains(before, t) {
			sign = "="
		}
		s.say("%s tap %s of user %s (%d): host %s %s", sign, t.name, name, t.uid, t.four, t.sixText())
	}
	if len(after) == 0 {
		return s.removeAll(before)
	}
	return s.install(before, after)
}

// install writes the files that are not as they should be, and runs the script,
// which makes what is missing.
func (s *Setup) install(before, after []entry) error {
	for _, tool := range []struct{ program, pack string }{{"ip", "iproute2"}, {"nft", "nftables"}} {
		if _, err := exec.LookPath(tool.program); err != nil {
			return fmt.Errorf("%s is missing, with which the taps are made at each boot; install it (apt-get install %s)",
				tool.program, tool.pack)
		}
	}
	var lines strings.Builder
	for _, t := range after {
		fmt.Fprintln(&lines, t)
	}
	if err := s.write(forwardFile, forwardScript, 0o755); err != nil {
		return err
	}
	if err := s.write(tapsFile, lines.String(), 0o644); err != nil {
		return err
	}
	if err := s.atBoot(); err != nil {
		return err
	}
	for _, t := range before {
		if !slices.Contains(after, t) {
			if err := s.command("ip", "link", "delete", t.name); err != nil {
				return err
			}
		}
	}
	return s.command(forwardFile, "start")
}

// atBoot makes the script run at each boot.
func (s *Setup) atBoot() error {
	if isDirectory("/run/systemd/system") {
		if err := s.write(unitFile, unitText, 0o644); err != nil {
			return err
		}
		if err := s.link(unitFile, wantedFile); err != nil {
			return err
		}
		return s.command("systemctl", "daemon-reload")
	}
	if _, err := exec.LookPath("update-rc.d"); err == nil && isDirectory(filepath.Dir(initFile)) {
		if err := s.link(forwardFile, initFile); err != nil {
			return err
		}
		return s.command("update-rc.d", "guise-setup", "defaults")
	}
	s.say("! this host has neither systemd nor update-rc.d: have `%s start` run as root at each boot", forwardFile)
	return nil
}

// removeAll undoes everything.
func (s *Setup) removeAll(before []entry) error {
	if _, err := os.Lstat(forwardFile); err == nil {
		if err := s.command(forwardFile, "stop"); err != nil {
			return err
		}
	} else if len(before) == 0 {
		s.say("nothing is set up")
		return nil
	}
	unit, init := exists(unitFile), exists(initFile)
	for _, path := range []string{wantedFile, unitFile, initFile, tapsFile, forwardFile} {
		if err := s.remove(path); err != nil {
			return err
		}
	}
	if !s.DryRun {
		os.Remove(directory) // fails if there are other files in it
	}
	if unit {
		return s.command("systemctl", "daemon-reload")
	}
	if init {
		return s.command("update-rc.d", "guise-setup", "remove")
	}
	return nil
}
