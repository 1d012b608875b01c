// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/image/imagetest"
)

// The test binary is three programs. Called guise-holder, it is a holder that
// keeps the plan's promises but has no stack; with GUISE_TEST_MAIN set, it is
// guise; else it runs the tests. So the command line is tested as it is run,
// without anything built beforehand.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == holder.Program:
		fakeHolder()
	case os.Getenv("GUISE_TEST_MAIN") != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

// fakeHolder writes the plan to $FAKE_DIR/plan, and its pid beside it. A line
// of the plan that contains $FAKE_ERROR is one it cannot do.
func fakeHolder() {
	// 3, 4 and 5: the test of the arguments is the real holder's.
	plan, err := io.ReadAll(os.NewFile(3, "plan"))
	if err != nil {
		panic(err)
	}
	status := os.NewFile(5, "status")
	dir := os.Getenv("FAKE_DIR")
	os.WriteFile(dir+"/plan", plan, 0o600)
	os.WriteFile(dir+"/pid", []byte(fmt.Sprint(os.Getpid())), 0o600)
	failed := false
	undo, remove := []string(nil), []string(nil)
	lines := bufio.NewScanner(bytes.NewReader(plan))
	for n := 1; lines.Scan(); n++ {
		switch words := strings.Fields(lines.Text()); words[0] {
		case "undo":
			undo = []string{words[1], "undo", words[2]}
		case "control":
			remove = append(words[2:], filepath.Dir(words[2]))
		}
		if e := os.Getenv("FAKE_ERROR"); e != "" && strings.Contains(lines.Text(), e) {
			fmt.Fprintf(status, "error %d: %s cannot be\n", n, e)
			failed = true
			break
		}
	}
	if !failed {
		fmt.Fprint(status, "ready\n")
		// The end of file comes with the last copy of the other end.
		buffer := make([]byte, 1)
		for {
			if n, err := unix.Read(4, buffer); n == 0 || err != nil && err != unix.EINTR {
				break
			}
		}
	}
	for _, path := range remove {
		os.Remove(path)
	}
	if undo != nil {
		if out, err := exec.Command(undo[0], undo[1:]...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "undo: %v %s\n", err, out)
		}
	}
	if !failed {
		fmt.Fprint(status, `summary {"cc":"westwood","connections":3,"sockets":4,"escaped":0,"tx_bytes":1,"rx_bytes":2,"retrans_segs":0,"members":1,"programs":1}`+"\n")
	}
}

// guise is a started command line.
type guise struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	dir            string // of the fake holder
}

// preloadLibrary is a library that does nothing, made once.
var preloadLibrary = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guise-test")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	library := filepath.Join(dir, "empty.so")
	if out, err := exec.Command("cc", "-shared", "-o", library, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(library)
})

func newGuise(t *testing.T, args ...string) *guise {
	t.Helper()
	library, err := preloadLibrary()
	if err != nil {
		t.Skipf("skipped: a library to preload takes a C compiler: %v", err)
	}
	g := &guise{dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(g.dir, holder.Program)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, holder.Preload), library, 0o755); err != nil {
		t.Fatal(err)
	}
	imagetest.Write(t, filepath.Join(g.dir, holder.Kernel), imagetest.Net)
	imagetest.Write(t, filepath.Join(g.dir, holder.Kernel+"-lia"), imagetest.Net+"extension lia\ncongestion lia\nscheduler lowrtt\n")
	g.Cmd = exec.Command(self, args...)
	g.Env = append(os.Environ(), "GUISE_TEST_MAIN=1", "GUISE_LIBDIR="+g.dir, "FAKE_DIR="+g.dir, "GUISE_RUNDIR="+g.dir+"/run")
	g.Stdout, g.Stderr = &g.stdout, &g.stderr
	return g
}

// status runs it to its end, and is its exit status, or minus the signal.
func (g *guise) status(t *testing.T) int {
	t.Helper()
	if g.Process == nil {
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
	}
	err := g.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	state := g.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		return -int(state.Signal())
	}
	return state.ExitStatus()
}

func (g *guise) plan(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(g.dir + "/plan")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// says checks the exit status, and that stderr contains the parts.
func (g *guise) says(t *testing.T, status int, parts ...string) {
	t.Helper()
	if got := g.status(t); got != status {
		t.Errorf("%q: status %d, want %d; it said %q", g.Args[1:], got, status, g.stderr.String())
	}
	for _, part := range parts {
		if !strings.Contains(g.stderr.String(), part) {
			t.Errorf("%q said %q, want something about %q", g.Args[1:], g.stderr.String(), part)
		}
	}
}

// holder is the pid of g's holder.
func (g *guise) holder(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(g.dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
