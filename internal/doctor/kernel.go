// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The range of addresses in which a region can be, in windows, and the size of one with
// the default memory: lib/region/create.c. A place in each window is tried.
const (
	highPlaces  = 0x7e9000000000
	lowPlaces   = 0x1000000000 // where programs have 39 bits of addresses
	placeStride = 4 << 30
	places      = 64
	placeBytes  = 0x1800000 + 256<<20
	pageMost    = 0x10000
)

var errElsewhere = errors.New("something else lies there")

// reserve maps a range of addresses as lib/region/map.c does, and unmaps it. It
// returns nil if the range was free.
func reserve(at, bytes uintptr) error {
	const kind = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	got, _, errno := unix.Syscall6(unix.SYS_MMAP, at, bytes, unix.PROT_NONE, kind|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 && errno != unix.EEXIST {
		// Where the flag is refused the address is a hint, as it is before Linux 4.17.
		got, _, errno = unix.Syscall6(unix.SYS_MMAP, at, bytes, unix.PROT_NONE, kind, ^uintptr(0), 0)
	}
	if errno != 0 {
		return errno
	}
	unix.Syscall(unix.SYS_MUNMAP, got, bytes, 0)
	if got != at {
		return errElsewhere
	}
	return nil
}

// memory checks whether the addresses of a region are free.
func (e *examination) memory() {
	first := uintptr(highPlaces)
	// If this page cannot be mapped and is not in use, programs have 39 bits of addresses.
	if err := reserve(highPlaces+places*placeStride-pageMost, pageMost); err != nil && err != unix.EEXIST {
		first = lowPlaces
	}
	free := 0
	var last error
	for i := range uintptr(places) {
		if err := reserve(first+i*placeStride, placeBytes); err != nil {
			last = err
		} else {
			free++
		}
	}
	switch {
	case free == places:
		e.find("memory", OK, "", "the addresses of a stack are free, and a stack's memory can be reserved")
	case free > 0:
		e.find("memory", OK, "", "%d of %d addresses that were tried for a stack are free", free, places)
	case errors.Is(last, unix.ENOMEM):
		// This process has mapped more than the holder will have: there it may work.
		e.find("memory", Note, "raise the limit (ulimit -v unlimited), or --memory 32M",
			"the limit of a process's address space (ulimit -v) is low: a program that maps much of its own cannot join a stack of 256M")
	default:
		e.find("memory", Bad, "start guise without what is loaded into each process", "none of the addresses that were tried for a stack is free (%v)", last)
	}
}

// probe is a system call of the host that guise uses, in a form that changes nothing,
// and what is missing without it.
type probe struct {
	name    string
	since   string
	call    func() unix.Errno
	missing string
}

func raw(number, a, b, c uintptr) unix.Errno {
	_, _, errno := unix.RawSyscall(number, a, b, c)
	return errno
}

var probes = []probe{
	{"memfd_create", "3.17", func() unix.Errno {
		name := []byte("guise-doctor\x00")
		fd, _, errno := unix.RawSyscall(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name[0])), unix.MFD_CLOEXEC, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		return errno
	}, ""},
	{"pidfd_open", "5.3", func() unix.Errno {
		fd, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(os.Getpid()), 0, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		return errno
	}, "the end of a program is seen by its socket to the holder only"},
	{"close_range", "5.9", func() unix.Errno {
		return raw(unix.SYS_CLOSE_RANGE, ^uintptr(0)>>1, ^uintptr(0)>>1, 0)
	}, "descriptors are closed one by one"},
}

// kernel finds system calls that an old kernel lacks, or that a filter refuses.
func (e *examination) kernel() {
	var name unix.Utsname
	release := "unknown"
	if unix.Uname(&name) == nil {
		release = unix.ByteSliceToString(name.Release[:])
	}
	var lacks []string
	for _, p := range probes {
		errno := p.call()
		if errno != unix.ENOSYS && errno != unix.EPERM {
			continue
		}
		if p.missing == "" {
			e.find("kernel", Bad, "run it where the call is allowed (Linux since "+p.since+")",
				"the host's kernel (%s) refuses %s, without which there is no stack", release, p.name)
			return
		}
		lacks = append(lacks, fmt.Sprintf("no %s (Linux %s): %s", p.name, p.since, p.missing))
	}
	if len(lacks) > 0 {
		e.find("kernel", Note, "nothing needs to be done; a newer kernel, or a filter that lets these calls through, has them",
			"the host's kernel is %s, and lacks some calls: %s", release, strings.Join(lacks, "; "))
		return
	}
	e.find("kernel", OK, "", "the host's kernel is %s, and has all that guise would use", release)
}
