// SPDX-License-Identifier: GPL-2.0-only

package setup

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
	"guise/internal/uplink/opener"
)

// Uplinks for users: root lists in a file who may use which interfaces, and has a service for each of these
// users wait on a socket (internal/uplink/opener). systemd has the sockets, and starts a service when its
// user needs it; an init script starts them all.
//
// Root runs guise itself here, at any time. So its file must be one that only root can change.

const (
	unitFolder  = "/etc/systemd/system"
	wantsFolder = unitFolder + "/sockets.target.wants"
	uplinksInit = "/etc/init.d/guise-uplink"
)

//go:embed uplinks.init
var uplinksScript string

func unitName(uid int) string { return fmt.Sprintf("guise-uplink-%d", uid) }

func socketUnit(uid int) string {
	return fmt.Sprintf(`# SPDX-License-Identifier: GPL-2.0-only
# Written by guise setup --uplink; guise setup --undo removes it.
[Unit]
Description=Uplinks of guise for user %[1]d

[Socket]
ListenSequentialPacket=%[2]s
SocketUser=%[1]d
SocketMode=0600
DirectoryMode=0755
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`, uid, opener.Socket(uid))
}

func serviceUnit(uid int, program string) string {
	return fmt.Sprintf(`# SPDX-License-Identifier: GPL-2.0-only
# Written by guise setup --uplink; guise setup --undo removes it.
[Unit]
Description=Uplinks of guise for user %[1]d

[Service]
ExecStart=%[2]s %[3]s %[1]d
CapabilityBoundingSet=CAP_NET_ADMIN CAP_BPF
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
PrivateTmp=yes
DevicePolicy=closed
DeviceAllow=/dev/net/tun rw
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET
RestrictNamespaces=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
`, uid, program, opener.Command)
}

// plainPath is one that a unit and a script take as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)

// program returns the file that root is to run.
func program() (string, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the path of this program: %w", err)
	}
	const advice = "expected a guise that only root can change: install it (sudo make install), and call that one"
	if err := access.RootOnly(path); err != nil {
		return "", access.Refuse("root would run %s for the user, and others than root can change that: %w; %s", path, err, advice)
	}
	if !plainPath.MatchString(path) {
		return "", access.Refuse("the path %q has characters that a unit does not take; %s", path, advice)
	}
	return path, nil
}

// parseUplinks reads the names.
func (s *Setup) parseUplinks() error {
	for _, name := range s.Uplinks {
		if device, way, ok := strings.Cut(name, ","); ok {
			return access.Refuse("--uplink %s: expected the name of an interface alone; what is set up for a user shares the host's address (%s), "+
				"and %s takes root", name, plan.Share, strings.Trim(way+" of "+device, " "))
		}
		if _, err := plan.NewUplink(name, "", ""); err != nil {
			return access.Refuse("--uplink: %w", err)
		}
	}
	return nil
}

// doUplinks sets the uplinks of a user up, or undoes that. uid -1: of all, to undo. It reports whether there
// was something to do.
func (s *Setup) doUplinks(uid int, name string) (bool, error) {
	before, err := opener.ReadAllowed(opener.AllowedFile)
	if err != nil {
		return false, err
	}
	var after []opener.Allowed
	for _, a := range before {
		undone := s.Undo && (uid < 0 || a.UID == uid) && (len(s.Uplinks) == 0 || slices.Contains(s.Uplinks, a.Interface))
		if undone {
			s.say("- uplink %s of user %d", a.Interface, a.UID)
			continue
		}
		after = append(after, a)
	}
	if s.Undo {
		if len(after) == len(before) {
			for _, u := range s.Uplinks {
				s.say("! no uplink %s is set up for that user", u)
			}
			return false, nil
		}
		return true, s.removeUplinks(before, after)
	}
	for _, u := range s.Uplinks {
		a := opener.Allowed{UID: uid, Interface: u, Way: plan.Share}
		sign := "="
		if !slices.Contains(after, a) {
			after, sign = append(after, a), "+"
		}
		s.say("%s uplink %s of user %s (%d)", sign, u, name, uid)
		if _, err := net.InterfaceByName(u); err != nil {
			s.say("! there is no interface %s at the moment; when it comes, it may be used", u)
		}
	}
	return true, s.installUplinks(uid, after)
}

func allowedText(all []opener.Allowed) string {
	text := "# Who may use which interfaces as uplinks: UID IFNAME WAY. Written by guise setup --uplink.\n"
	for _, a := range all {
		text += a.String() + "\n"
	}
	return text
}

func (s *Setup) installUplinks(uid int, after []opener.Allowed) error {
	guise, err := program()
	if err != nil {
		return err
	}
	if err := s.write(opener.AllowedFile, allowedText(after), 0o644); err != nil {
		return err
	}
	unit := unitName(uid)
	switch {
	case isDirectory("/run/systemd/system"):
		for _, f := range [][2]string{{".socket", socketUnit(uid)}, {".service", serviceUnit(uid, guise)}} {
			if err := s.write(filepath.Join(unitFolder, unit+f[0]), f[1], 0o644); err != nil {
				return err
			}
		}
		if err := s.link(filepath.Join(unitFolder, unit+".socket"), filepath.Join(wantsFolder, unit+".socket")); err != nil {
			return err
		}
		return errors.Join(s.command("systemctl", "daemon-reload"), s.command("systemctl", "start", unit+".socket"))
	case hasInit():
		if err := s.write(uplinksInit, strings.ReplaceAll(uplinksScript, "@GUISE@", guise), 0o755); err != nil {
			return err
		}
		return errors.Join(s.command("update-rc.d", "guise-uplink", "defaults"), s.command(uplinksInit, "start"))
	}
	s.say("! this host has neither systemd nor update-rc.d: have `%s %s %d` run as root, now and at each boot", guise, opener.Command, uid)
	return nil
}

func hasInit() bool {
	_, err := exec.LookPath("update-rc.d")
	return err == nil && isDirectory(filepath.Dir(uplinksInit))
}

// removeUplinks takes away what is no longer allowed: services end, and with them the uplinks of their user,
// so that stacks that run lose them, too.
func (s *Setup) removeUplinks(before, after []opener.Allowed) error {
	var failed []error
	try := func(err error) { failed = append(failed, err) }
	if len(after) > 0 {
		try(s.write(opener.AllowedFile, allowedText(after), 0o644))
	} else {
		try(s.remove(opener.AllowedFile))
	}
	changed := []int{}
	for _, a := range before {
		if !slices.Contains(after, a) && !slices.Contains(changed, a.UID) {
			changed = append(changed, a.UID)
		}
	}
	reload := false
	for _, uid := range changed {
		unit, left := unitName(uid), len(opener.Of(after, uid)) > 0
		file := filepath.Join(unitFolder, unit)
		if !exists(file + ".socket") {
			continue
		}
		if left {
			try(s.command("systemctl", "stop", unit+".service"))
			continue
		}
		try(s.command("systemctl", "stop", unit+".socket", unit+".service"))
		for _, path := range []string{filepath.Join(wantsFolder, unit+".socket"), file + ".socket", file + ".service"} {
			try(s.remove(path))
		}
		reload = true
	}
	if reload {
		try(s.command("systemctl", "daemon-reload"))
	}
	if exists(uplinksInit) {
		try(s.command(uplinksInit, "stop"))
		if len(after) > 0 {
			try(s.command(uplinksInit, "start"))
		} else {
			try(s.remove(uplinksInit))
			try(s.command("update-rc.d", "guise-uplink", "remove"))
		}
	}
	if !s.DryRun { // these fail if there are other files in them
		os.Remove(directory)
		os.Remove(opener.Folder)
	}
	return errors.Join(failed...)
}
