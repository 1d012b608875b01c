// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const attackCommand = "attack"

// attack is code of someone who has taken over the process apart: it prints what it gets.
func attack() {
	time.Sleep(time.Millisecond) // it has begun to poll, as by its channel
	if err := confine(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	path, _ := unix.BytePtrFromString("/")
	name, argv := uintptr(unsafe.Pointer(path)), [2]uintptr{uintptr(unsafe.Pointer(path)), 0}
	here := unix.AT_FDCWD
	call := func(what string, number uintptr, a ...uintptr) {
		var six [6]uintptr
		copy(six[:], a)
		if _, _, err := unix.RawSyscall6(number, six[0], six[1], six[2], six[3], six[4], six[5]); err != unix.EPERM {
			fmt.Printf("%s: %v\n", what, err)
		}
	}
	const page = 4096
	call("openat", unix.SYS_OPENAT, uintptr(here), name, unix.O_RDONLY)
	call("socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM)
	call("socketpair", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0, name)
	call("sendmsg", unix.SYS_SENDMSG, 1, name)
	call("setsockopt", unix.SYS_SETSOCKOPT, 1, unix.SOL_SOCKET, unix.SO_DETACH_FILTER)
	call("ioctl", unix.SYS_IOCTL, 1, unix.TIOCSTI, name)
	call("dup", unix.SYS_DUP, 1)
	call("fcntl", unix.SYS_FCNTL, 1, unix.F_SETFL)
	call("execve", unix.SYS_EXECVE, name, uintptr(unsafe.Pointer(&argv)))
	call("a process", unix.SYS_CLONE, uintptr(unix.SIGCHLD))
	call("clone3", unix.SYS_CLONE3, name, 64)
	call("kill", unix.SYS_KILL, 1, 0)
	call("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1)
	call("process_vm_readv", unix.SYS_PROCESS_VM_READV, 1)
	call("prctl", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)
	call("setresuid", unix.SYS_SETRESUID)
	call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	call("setns", unix.SYS_SETNS, 0, 0)
	call("mount", unix.SYS_MOUNT, name, name)
	call("bpf", unix.SYS_BPF)
	call("io_uring", unix.SYS_IO_URING_SETUP, 1, name)
	call("memory that is executed", unix.SYS_MMAP, 0, page, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0))
	call("mprotect", unix.SYS_MPROTECT, name&^(page-1), page, unix.PROT_EXEC)
	runtime.KeepAlive(path)

	// Go's runtime goes on: threads, timers, memory.
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			time.Sleep(50 * time.Millisecond)
			all.Done()
		}()
	}
	all.Wait()
	for range 4 {
		b := make([]byte, 32<<20)
		for i := 0; i < len(b); i += page {
			b[i] = 1
		}
		runtime.KeepAlive(b)
		debug.FreeOSMemory()
	}
	fmt.Println("done")
	os.Exit(0)
}

func TestWhoHasTakenTheProcessOverGetsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: it takes root")
	}
	if _, _, err := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); err != 0 {
		t.Skip("skipped: with cgo rights cannot be given up in all threads; guise is built without (CGO_ENABLED=0)")
	}
	c := exec.Command("/proc/self/exe", attackCommand)
	out, err := c.CombinedOutput()
	if text := strings.TrimSpace(string(out)); err != nil || text != "done" {
		t.Errorf("%v: %s", err, text)
	}
}
