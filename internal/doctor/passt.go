// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/passt"
	"guise/internal/plan"
)

// passt starts a passt as a run would, if a run would need one.
func (e *examination) passt() {
	path, err := passt.Find()
	if e.Way != plan.Passt {
		if err != nil {
			e.find("passt", OK, "", "there is no passt, and none is needed")
		}
		return
	}
	if err != nil {
		e.find("passt", Bad, "apt-get install passt, or sudo guise setup", "there is no passt in $PATH, and without root it is the way out")
		return
	}
	if err := userNamespace(); err != nil {
		e.find("namespaces", Bad, "sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone, the profile of AppArmor, "+
			"or the container's seccomp filter forbid them; sudo guise setup does without",
			"this user can make no user namespace (%v), in which passt shuts itself in", err)
		return
	}
	if err := passt.Try(); err != nil {
		e.find("passt", Bad, "mend that, or sudo guise setup", "passt cannot carry a stack: %v", err)
		return
	}
	e.find("passt", OK, "", "%s starts, and would carry a stack", path)
	if queue, err := passt.Queue(); err == nil {
		e.passtQueue(queue)
	}
	if old(path) {
		e.find("passt", Note, "sudo guise setup, or a newer passt",
			"this passt is Debian 12's, or as old: what comes in after a program has shut its own direction of a connection down "+
				"it damages, and it does not tell that a connection was refused")
	}
}

// usualQueue is Linux's own net.core.wmem_max.
const usualQueue = 212992

func (e *examination) passtQueue(queue int) {
	if queue < usualQueue {
		e.find("passt", Note, fmt.Sprintf("have root raise it: sysctl -w net.core.wmem_max=%d", usualQueue),
			"net.core.wmem_max is %d, so a socket to passt holds little: several downloads at once stall for seconds", queue)
	}
}

// userNamespace tries to make one.
func userNamespace() error {
	cmd := exec.Command("/proc/self/exe", "--version")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

var versionDate = regexp.MustCompile(`git(\d{8})|\b(20\d\d)_(\d\d)_(\d\d)\.`)

// old reports whether it is the passt of Debian 12, or an older one.
func old(path string) bool {
	out, _ := exec.Command(path, "--version").CombinedOutput()
	if bytes.Contains(out, []byte("unknown version")) {
		return true // as Debian 12's reports
	}
	found := versionDate.FindSubmatch(out)
	if found == nil {
		return false
	}
	date := string(found[1]) + string(found[2]) + string(found[3]) + string(found[4])
	return date <= "20230309"
}
