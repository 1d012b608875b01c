// SPDX-License-Identifier: GPL-2.0-only

// Package nettest gives a test a network namespace of its own.
package nettest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Namespace moves the test's thread, and what the test starts, into a new
// network namespace, in which only lo exists and is up. The test is skipped
// where it may not do that.
func Namespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: a network namespace of the test's own takes root")
	}
	runtime.LockOSThread()
	before, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("skipped: no new network namespace: %v", err)
	}
	t.Cleanup(func() {
		defer before.Close()
		if unix.Setns(int(before.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	})
	Run(t, "ip", "link", "set", "lo", "up")
}

// Run runs a program that must succeed, and returns what it wrote.
func Run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}
