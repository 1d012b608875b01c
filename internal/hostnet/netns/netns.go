// SPDX-License-Identifier: GPL-2.0-only

// Package netns runs functions in other network namespaces than this process's.
package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
)

// The folder in which `ip netns add` has its namespaces.
const namedNamespaces = "/run/netns"

// Run runs f on a thread of its own, in the network namespace of the open file, and
// waits for it.
func Run(file *os.File, f func() error) error {
	result := make(chan error)
	go func() {
		// Never unlocked: so the thread ends with its goroutine, and no other
		// goroutine runs in that namespace.
		runtime.LockOSThread()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// Open opens a namespace by its name of `ip netns`.
func Open(name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(namedNamespaces, name))
	if errors.Is(err, os.ErrNotExist) {
		hint := "there are none"
		if names := namespaceNames(); len(names) > 0 {
			hint = fmt.Sprintf("there are %q", names)
		}
		return nil, access.Refuse("no network namespace is called %q (%s); `ip netns add %s` makes it, tap:IFNAME means a tap in this one",
			name, hint, name)
	}
	return file, err
}

func namespaceNames() []string {
	entries, err := os.ReadDir(namedNamespaces)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Visit runs f in the network namespace that Current returned once. If that has no
// name and no process is in it any more, it is gone with all that was in it, and f
// is not run.
func Visit(wanted ID, f func() error) error {
	current, err := Current()
	if err != nil {
		return err
	}
	if current == wanted {
		return f()
	}
	named, _ := filepath.Glob(filepath.Join(namedNamespaces, "*"))
	used, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range append(named, used...) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Ino != wanted.Inode {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		reused := false
		err = Run(file, func() error {
			there, err := Current()
			if err != nil {
				return err
			}
			if reused = there != wanted; reused {
				return nil
			}
			return f()
		})
		file.Close()
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("cannot enter the network namespace %s: it takes CAP_SYS_ADMIN: %w", path, err)
		}
		if !reused {
			return err
		}
	}
	return nil
}

// ID identifies a network namespace. The host uses inode numbers again. It never
// uses a cookie again, but kernels before 5.14 have none (0).
type ID struct {
	Inode  uint64 `json:"inode"`
	Cookie uint64 `json:"cookie,omitempty"`
}

// Current is the network namespace of the calling thread.
func Current() (ID, error) {
	inode, err := Inode("/proc/thread-self/ns/net")
	if err != nil {
		return ID{}, err
	}
	n := ID{Inode: inode}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ID{}, fmt.Errorf("cannot make a socket: %w", err)
	}
	defer unix.Close(fd)
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		n.Cookie = cookie
	}
	return n, nil
}

// Inode is the inode number of a namespace's file.
func Inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return st.Ino, nil
}
