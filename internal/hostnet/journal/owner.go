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

// Process identifies a process. The host uses a pid again, but not a pid together
// with the time at which the process started.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat
}

// ProcessOf returns the process that has this pid now.
func ProcessOf(pid int) (Process, error) {
	start, _, err := readStat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("cannot identify process %d: %w", pid, err)
	}
	return Process{pid, start}, nil
}

// Alive reports whether the process still runs. A zombie does not: its descriptors
// are closed, and only its parent has not waited for it yet.
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
	// The second field is the program's name in parentheses, which may itself
	// have blanks and parentheses; the third is the state.
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is not as expected: %q", pid, text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return start, fields[0][0], err
}
