// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// Traced is the command of guise for a process that only exists to be traced.
const Traced = "wait-to-be-traced"

// RunTraced does nothing, until its standard input ends.
func RunTraced([]string) error {
	_, err := os.Stdin.Read(make([]byte, 1))
	if err != nil {
		return nil
	}
	return fmt.Errorf("guise %s is for guise doctor alone", Traced)
}

// The requests of ptrace(2) that the holder makes when a program joins, and one that every
// kernel knows.
const (
	ptraceSeize    = 0x4206
	ptraceContinue = 7
)

func ptrace(request, pid uintptr) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, request, pid, 0, 0, 0, 0)
	return errno
}

var tracerPID = regexp.MustCompile(`(?m)^TracerPid:\t([1-9]\d*)$`)

// tryTracing makes a process and traces it as the holder would: 0 if that is allowed. tracer
// is the program that traces that process already, as strace -f does with children, or "".
func tryTracing() (refused unix.Errno, tracer string, err error) {
	wait, end, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	defer wait.Close()
	process, err := os.StartProcess("/proc/self/exe", []string{"guise", Traced}, &os.ProcAttr{Files: []*os.File{wait}})
	if err == nil {
		refused = ptrace(ptraceSeize, uintptr(process.Pid))
		if refused != 0 {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Pid))
			if found := tracerPID.FindSubmatch(text); found != nil {
				tracer = string(found[1])
			}
		}
	}
	end.Close()
	if err == nil {
		_, err = process.Wait()
	}
	return refused, tracer, err
}

// tracing finds whether the holder can trace the programs on a stack. It tries that with a
// child of this process, which Yama always allows; whether Yama allows to trace other
// processes is read from its sysctl.
func (e *examination) tracing() {
	refused, tracer, err := tryTracing()
	if err != nil || tracer != "" {
		// Then only find whether the call is allowed at all, without a process.
		if refused = ptrace(ptraceContinue, ^uintptr(0)); refused == unix.ESRCH {
			refused = 0
		}
	}
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(text))
	if err != nil {
		scope = ""
	}
	e.judgeTracing(refused, tracer, scope)
}

func (e *examination) judgeTracing(refused unix.Errno, tracer, scope string) {
	const cost = "a program that is killed in the middle of a change to its stack loses it for all that are on it"
	const detach = "; for strace -p and gdb -p on one, guise detach PID first"
	const served = "nothing needs to be done for programs on a stack of their own; for several, type guise run --served -- CMD: " +
		"then no death of a program costs the others their stack, and each call takes longer (in a config: served = true); "
	switch {
	case tracer != "":
		e.find("tracing", Note, "run guise doctor, and guise run, where nothing traces them", "process %s traces guise doctor and what it starts, "+
			"as strace -f does: what is traced already the holder of a stack cannot trace: %s", tracer, cost)
	case refused == 0 && scope == "1":
		e.find("tracing", OK, "", "kernel.yama.ptrace_scope is 1: programs on a stack allow its holder to trace them, so that it outlives their deaths"+detach)
	case refused == 0:
		e.find("tracing", OK, "", "programs on a stack are traced by its holder, so that it outlives their deaths"+detach)
	case scope == "2" || scope == "3":
		e.find("tracing", Note, served+"sysctl kernel.yama.ptrace_scope=1 helps as well",
			"kernel.yama.ptrace_scope is %s, which forbids to trace programs: %s", scope, cost)
	default:
		e.find("tracing", Note, served+"a filter or profile that lets ptrace through helps as well (docker run --cap-add SYS_PTRACE)",
			"the host refuses ptrace (%v), by which a stack outlives the death of a program: %s", refused, cost)
	}
}
