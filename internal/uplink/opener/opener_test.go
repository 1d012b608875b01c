// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhoMayUseWhatIsReadFromAFileOfRootsOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: making files of root's and of others takes root")
	}
	path := filepath.Join(t.TempDir(), "uplinks")
	if all, err := ReadAllowed(path); err != nil || len(all) != 0 {
		t.Errorf("no file: %v, %v", all, err)
	}
	text := "# a comment\n1000 wlan0 share\n1001 usb0 share\n\n1000 usb0 share\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := ReadAllowed(path)
	if names := Of(all, 1000); err != nil || !slices.Equal(names, []string{"wlan0", "usb0"}) || len(Of(all, 0)) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	for name, change := range map[string]func() error{
		"of another":        func() error { return os.Chown(path, 1000, 0) },
		"of many to write":  func() error { return os.Chmod(path, 0o666) },
		"of a group":        func() error { return os.Chmod(path, 0o664) },
		"of too many bytes": func() error { return os.Truncate(path, mostAllowed+1) },
		"of another's sense": func() error {
			return os.WriteFile(path, []byte("1000 wlan0 exclusive\n"), 0o644)
		},
		"a pipe": func() error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o644)) },
		"a link": func() error {
			return errors.Join(os.Remove(path), os.WriteFile(path+".real", []byte(text), 0o644), os.Symlink(path+".real", path))
		},
	} {
		os.Remove(path)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), change()); err != nil {
			t.Fatal(err)
		}
		if all, err := ReadAllowed(path); err == nil {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// answer is a service that answers the requests of a client, each by some packets. %d is the request's number.
func answer(t *testing.T, answers ...[]string) *Client {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer unix.Close(pair[1])
		buffer := make([]byte, mostMessage)
		for _, packets := range answers {
			n, err := unix.Read(pair[1], buffer)
			if err != nil || n == 0 {
				return
			}
			seq, _, _ := strings.Cut(string(buffer[:n]), " ")
			for _, p := range packets {
				unix.Write(pair[1], []byte(strings.Replace(p, "%d", seq, 1)))
			}
		}
	}()
	c := From(os.NewFile(uintptr(pair[0]), "opener"))
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAnAnswerIsThatOfItsRequest(t *testing.T) {
	c := answer(t, []string{"1 ok 1-2", "7 no", "%d ok 61000-61999"}, []string{"%d no you may not"}, []string{"%d ok tap"})
	if ports, err := c.Ports(""); err != nil || ports != "61000-61999" {
		t.Errorf("%q, %v", ports, err)
	}
	var refused RefusedError
	if err := c.CloseUplink("usb0"); !errors.As(err, &refused) || refused.Error() != "you may not" {
		t.Errorf("%v", err)
	}
	if _, err := c.Open("usb0"); err == nil || !strings.Contains(err.Error(), "answered") {
		t.Errorf("an answer without a descriptor: %v", err)
	}
	ended := c.Ended()
	if _, err := c.Open("usb0"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a service that has ended: %v", err)
	}
	<-ended
}

func TestTheServiceIsOfAUserThatIsNotRoot(t *testing.T) {
	for _, args := range [][]string{nil, {"0"}, {"-1"}, {"x"}, {fmt.Sprint(1 << 40)}, {"1", "2", "3"}} {
		if err := RunServe(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
