// SPDX-License-Identifier: GPL-2.0-only

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process names a process for good: a pid is used again, together with the
// time of its start it is not.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat
}

// ProcessOf is the process that has this pid now.
func ProcessOf(pid int) (Process, error) {
	start, _, err := readStat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("cannot identify process %d: %w", pid, err)
	}
	return Process{pid, start}, nil
}

// Alive says whether the process still runs. A zombie does not: its
// descriptors are closed, only its parent has not looked yet.
func (p Process) Alive() bool {
	start, state, err := readStat(p.PID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH)
	}
	return start == p.Start && state != 'Z' && state != 'X'
}

func readStat(pid int) (start uint64, state byte, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field is the program's name in parentheses, and may itself
	// hold blanks and parentheses; the third is the state.
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is not as expected: %q", pid, text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return start, fields[0][0], err
}

// Namespace names a network namespace. Inode numbers are used again; the
// cookie is not, but kernels before 5.14 have none (0).
type Namespace struct {
	Inode  uint64 `json:"inode"`
	Cookie uint64 `json:"cookie,omitempty"`
}

// CurrentNamespace is the network namespace of the calling thread.
func CurrentNamespace() (Namespace, error) {
	inode, err := inodeOf("/proc/thread-self/ns/net")
	if err != nil {
		return Namespace{}, err
	}
	n := Namespace{Inode: inode}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Namespace{}, fmt.Errorf("cannot make a socket: %w", err)
	}
	defer unix.Close(fd)
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		n.Cookie = cookie
	}
	return n, nil
}

func inodeOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return st.Ino, nil
}
