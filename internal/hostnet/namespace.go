// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
)

// Where `ip netns add` keeps its namespaces.
const namedNamespaces = "/run/netns"

// inNamespace runs f on a thread of its own in the network namespace that the
// open file is, and waits for it.
func inNamespace(file *os.File, f func() error) error {
	result := make(chan error)
	go func() {
		// Never unlocked: the thread ends with its goroutine, and no other
		// finds itself in a foreign namespace.
		runtime.LockOSThread()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// openNamed opens a namespace by the name `ip netns` knows it by.
func openNamed(name string) (*os.File, error) {
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

// visit runs f in the network namespace that a journal names. A namespace
// that nobody is in and that has no name is gone, and what was in it too:
// then f is not run.
func visit(wanted journal.Namespace, f func() error) error {
	current, err := journal.CurrentNamespace()
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
		err = inNamespace(file, func() error {
			there, err := journal.CurrentNamespace()
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
