// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"encoding/json"
	"os/exec"
	"slices"

	"guise/internal/holder"
	"guise/internal/plain"
)

// isolation finds what the process that carries a stack can give up on this host: the holder's
// program tries it.
func (e *examination) isolation() {
	program, err := holder.Find(holder.Program)
	if err != nil {
		return // said elsewhere
	}
	said, err := exec.Command(program, "--isolation").Output()
	var found struct {
		Unconfined []string `json:"unconfined"`
	}
	if err == nil {
		err = json.Unmarshal(said, &found)
	}
	if err != nil {
		e.find("isolation", Bad, "", "what carries a stack cannot give up its rights: %s", plain.Text(err.Error()))
		return
	}
	e.judgeIsolation(found.Unconfined)
}

func (e *examination) judgeIsolation(unconfined []string) {
	const rest = "; it gives up its capabilities, and the right to new ones, all the same"
	switch calls := slices.Contains(unconfined, "calls"); {
	case calls && len(unconfined) > 1:
		e.find("isolation", Note, "allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns) and seccomp",
			"what carries a stack sees the host's files, and may make all system calls: the host allows neither namespaces nor seccomp filters"+rest)
	case calls:
		e.find("isolation", Note, "a kernel with CONFIG_SECCOMP_FILTER, or a profile that lets seccomp(2) through, helps",
			"what carries a stack may make all system calls: the host refuses seccomp filters"+rest)
	case len(unconfined) > 0:
		e.find("isolation", Note, "sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0 may allow it",
			"what carries a stack sees the host's files, as far as its user may: the host does not allow it a namespace of its own"+rest)
	default:
		e.find("isolation", OK, "", "what carries a stack has no capabilities, no files, and few system calls")
	}
}
