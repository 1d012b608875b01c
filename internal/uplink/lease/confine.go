// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What the process apart gives up, before it reads the first byte that the network has sent. It
// begins in namespaces of processes, networks and IPC in which there is nothing else; then:
//
//	1 root		of a root: a folder of its own in /proc in place of the host's files
//	2 user		of a root: nobody, and no groups
//	3 capabilities	none, in all sets of all threads
//	4 privileges	no program that is executed gives new ones (no_new_privs)
//	5 calls		a filter (seccomp) of the system calls that Go's runtime and two open sockets need. Others
//			fail with EPERM: none opens or makes a descriptor, executes anything, makes a process,
//			or touches one
//
// All must succeed, except 5 on a kernel without such filters. Another user keeps its ids: it may have no
// right to change them, and 5 takes away what they are good for.

const nobody = 65534

// confine is called when a descriptor has been waited for: so the runtime has what it polls with.
func confine() error {
	if unix.Geteuid() == 0 {
		steps := []struct {
			what string
			do   func() error
		}{
			{"its root", func() error { return errors.Join(unix.Chroot("/proc/self/fdinfo"), unix.Chdir("/")) }},
			{"its groups", func() error { return syscall.Setgroups([]int{}) }},
			{"its group", func() error { return syscall.Setresgid(nobody, nobody, nobody) }},
			{"its user", func() error { return syscall.Setresuid(nobody, nobody, nobody) }},
		}
		for _, s := range steps {
			if err := s.do(); err != nil {
				return fmt.Errorf("cannot give up %s: %w", s.what, err)
			}
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	all := func(what string, number, a, b uintptr) error {
		if _, _, err := syscall.AllThreadsSyscall6(number, a, b, 0, 0, 0, 0); err != 0 {
			return fmt.Errorf("cannot give up %s: %w", what, err)
		}
		return nil
	}
	err := errors.Join(
		// Changing the user has unset it; the parent may have ended before, and then the channel has.
		all("its life", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)),
		all("capabilities", unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none))),
		all("privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1),
	)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if err != nil {
		return err
	}
	return filterCalls()
}

// Of struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg2   = 32
)

var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// calls are those that are needed from then on.
var calls = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_RECVMSG, unix.SYS_RECVFROM, unix.SYS_SENDTO, // of open descriptors
	unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_SCHED_YIELD,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RESTART_SYSCALL, unix.SYS_GETRANDOM,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_SIGALTSTACK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
	unix.SYS_TGKILL, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// filterProgram allows these, threads, and memory that is not executed.
func filterProgram(arch uint32) ([]bpf.RawInstruction, error) {
	const (
		retErrno = 0x00050000 // SECCOMP_RET_ERRNO
		retAllow = 0x7fff0000
		retKill  = 0x80000000
	)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	for _, number := range calls {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: 1},
			bpf.RetConstant{Val: retAllow})
	}
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 3},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_THREAD, SkipFalse: 4},
		bpf.RetConstant{Val: retAllow},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_MMAP, SkipFalse: 2},
		bpf.LoadAbsolute{Off: offArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.PROT_EXEC, SkipTrue: 1},
		bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)},
		bpf.RetConstant{Val: retAllow})
	return bpf.Assemble(program)
}

func filterCalls() error {
	arch := architectures[runtime.GOARCH]
	if arch == 0 {
		return fmt.Errorf("no filter of system calls is known for %s", runtime.GOARCH)
	}
	raw, err := filterProgram(arch)
	if err != nil {
		return err
	}
	filter := socketFilter(raw)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch errno {
	case 0, unix.ENOSYS, unix.EINVAL:
		return nil
	}
	return fmt.Errorf("cannot give up system calls: %w", errno)
}
