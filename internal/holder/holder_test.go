// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPreloadIsAppended(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"", "LD_PRELOAD=/lib/libguise-preload.so"},
		{"LD_PRELOAD=", "LD_PRELOAD=/lib/libguise-preload.so"},
		{"LD_PRELOAD=a.so b.so", "LD_PRELOAD=a.so:b.so:/lib/libguise-preload.so"},
		{"LD_PRELOAD=a.so:/else/libguise-preload.so", "LD_PRELOAD=a.so:/lib/libguise-preload.so"},
	} {
		got, err := Environment([]string{"A=b", c.before, "GUISE_STACK=3", "GUISE_MPTCP=1"}, "/lib/libguise-preload.so", 1000, false)
		if err != nil {
			t.Fatal(err)
		}
		got = slices.DeleteFunc(got, func(v string) bool { return v == "" })
		if want := []string{"A=b", c.after, "GUISE_STACK=1000"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := Environment(nil, "/my lib/libguise-preload.so", 1000, false); err == nil || !strings.Contains(err.Error(), "/my lib") {
		t.Errorf("a blank in the path: %v", err)
	}
}

func TestASanitizersRuntimeComesBehindThePreloadLibrary(t *testing.T) {
	sanitizer = "/lib/libasan.so"
	defer func() { sanitizer = "" }()
	for _, before := range []string{"LD_PRELOAD=a.so", "LD_PRELOAD=a.so:/lib/libguise-preload.so:/lib/libasan.so"} {
		got, err := Environment([]string{before}, "/lib/libguise-preload.so", 1000, false)
		if err != nil {
			t.Fatal(err)
		}
		if want := "LD_PRELOAD=a.so:/lib/libguise-preload.so:/lib/libasan.so"; got[0] != want {
			t.Errorf("got %q, want %q", got[0], want)
		}
	}
}

func TestHolderIsOnNoStack(t *testing.T) {
	got := holderEnvironment([]string{"LD_PRELOAD=/x/libguise-preload.so", "GUISE_STACK=3", "GUISE_KERNEL=k", "GUISE_LIBDIR=l"})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"GUISE_KERNEL=" + filepath.Join(here, "k"), "GUISE_LIBDIR=l"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// reporting is a holder that has written text and, if it has ended, closed.
func reporting(t *testing.T, text string, ended bool) *Holder {
	t.Helper()
	hear, say, err := socketpair(unix.SOCK_STREAM, "status")
	if err != nil {
		t.Fatal(err)
	}
	h := &Holder{reports: listen(hear)}
	fmt.Fprint(say, text)
	if ended {
		say.Close()
	} else {
		t.Cleanup(func() { say.Close() })
	}
	return h
}

func TestAHolderIsReady(t *testing.T) {
	if err := reporting(t, "ready\n", false).Wait(nil); err != nil {
		t.Error(err)
	}
}

func TestWhatAHolderSaysInPlaceOfReady(t *testing.T) {
	var build *BuildError
	if err := reporting(t, "error 7: no: such thing\n", true).Wait(nil); !errors.As(err, &build) || build.Line != 7 || build.Reason != "no: such thing" {
		t.Errorf("got %v", err)
	}
	if err := reporting(t, "error without a line\n", true).Wait(nil); !errors.As(err, &build) || build.Line != 0 {
		t.Errorf("got %v", err)
	}
	for text, part := range map[string]string{"": "ended before", "rea": "ended before", "hello\n": `"hello"`} {
		if err := reporting(t, text, true).Wait(nil); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", text, err)
		}
	}
	stop := make(chan os.Signal, 1)
	stop <- unix.SIGINT
	var signal Interrupted
	if err := reporting(t, "", false).Wait(stop); !errors.As(err, &signal) || signal.Signal != unix.SIGINT {
		t.Errorf("got %v", err)
	}
}

func TestSummaryIsALineOfProof(t *testing.T) {
	h := reporting(t, `summary {"cc":"bbr","programs":1,"connections":1,"escaped":2,"more":"than we know"}`+"\n", true)
	s, err := h.Summary(time.Minute, nil)
	if err != nil || s.String() != "bbr on the wire, 1 program, 1 connection, 2 sockets escaped to the host" {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err := reporting(t, "", true).Summary(time.Minute, nil); err == nil || !strings.Contains(err.Error(), "without a summary") {
		t.Errorf("got %v", err)
	}
	if _, err := reporting(t, "", false).Summary(time.Millisecond, nil); !errors.Is(err, ErrTime) {
		t.Errorf("got %v", err)
	}
}

// A command that calls in the moment of a stack's end is told that it has ended.
func TestAHolderThatEndsWithoutHavingHeardUsHasEnded(t *testing.T) {
	t.Setenv("GUISE_RUNDIR", t.TempDir())
	s, err := Reserve("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := Dial(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.Close()
	if _, err := c.Status(0); !errors.As(err, &NoStackError{}) {
		t.Errorf("expected NoStackError, got %v", err)
	}
	if err := other.WaitForEnd(time.Minute, nil); err != nil {
		t.Errorf("expected the end, got %v", err)
	}
}

// It is stopped, and as many have called as its socket holds.
func TestAHolderThatDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	t.Setenv("GUISE_RUNDIR", t.TempDir())
	s, err := Reserve("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for err == nil {
		var fd int
		if fd, err = connect(s.Path, time.Millisecond); err == nil {
			defer unix.Close(fd)
		}
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Errorf("expected EAGAIN of a full socket, got %v", err)
	}
	SweepSockets()
	if _, err := os.Stat(s.Path); err != nil {
		t.Errorf("the socket of a holder that is there was removed: %v", err)
	}
	if c, err := Dial(s.Path); !errors.Is(err, ErrTime) {
		t.Errorf("expected ErrTime, got %v, %v", c, err)
	}
}

func TestEndingIsWhatTheHolderSays(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GUISE_RUNDIR", dir)
	s, err := Reserve("") // one that has yet to begin: nobody answers, and nobody waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start := time.Now()
	if AnyEnding() || time.Since(start) > endingPatience {
		t.Errorf("a stack that is being prepared counts as ending, or was waited for")
	}
	for answer, want := range map[string]bool{
		"":                             true, // it hung up
		`{"ending":true,"members":0}`:  true,
		`{"ending":true,"members":2}`:  false,
		`{"ending":false,"members":0}`: false,
		"error you may not":            false,
	} {
		path := filepath.Join(dir, "1"+socketSuffix)
		listener, err := listenAt(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			p := []unix.PollFd{{Fd: int32(listener.Fd()), Events: unix.POLLIN}}
			unix.Poll(p, -1)
			fd, _, err := unix.Accept(int(listener.Fd()))
			if err != nil {
				return
			}
			unix.Read(fd, make([]byte, 100))
			if answer != "" {
				unix.Write(fd, []byte(answer))
			}
			unix.Close(fd)
		}()
		if got := AnyEnding(); got != want {
			t.Errorf("of a holder that answers %q: %v", answer, got)
		}
		listener.Close()
		os.Remove(path)
	}
}
