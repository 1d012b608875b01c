// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/rundir"
)

const stranger = 65534

// folderOf makes the runtime folder of this test, and gives it to a user.
func folderOf(t *testing.T, owner int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: giving a folder to another user takes root")
	}
	dir := filepath.Join(t.TempDir(), "guise")
	t.Setenv("GUISE_RUNDIR", dir)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, owner, owner)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// answers listens in the folder as that user, and gives the answers, each with a descriptor.
func answers(t *testing.T, dir, name string, user int, texts map[string]string) {
	t.Helper()
	answersBy(t, dir, name, user, func(request string) string {
		word, _, _ := strings.Cut(request, " ")
		return texts[word]
	})
}

func answersBy(t *testing.T, dir, name string, user int, answer func(request string) string) {
	t.Helper()
	f, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The host's kernel notes who calls listen(2).
	if err := unix.Setresuid(-1, user, 0); err != nil {
		t.Fatal(err)
	}
	listener, err := listenAt(f.At(name))
	if e := unix.Setresuid(-1, 0, 0); err != nil || e != nil {
		t.Fatal(err, e)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			fds := []unix.PollFd{{Fd: int32(listener.Fd()), Events: unix.POLLIN}}
			if n, err := unix.Poll(fds, 10000); n <= 0 && err != unix.EINTR {
				return
			}
			client, _, err := unix.Accept(int(listener.Fd()))
			if err != nil {
				continue
			}
			request := make([]byte, 64)
			for {
				n, _, err := unix.Recvfrom(client, request, 0)
				if err != nil || n <= 0 {
					break
				}
				unix.Sendmsg(client, []byte(answer(string(request[:n]))), unix.UnixRights(0), nil, unix.MSG_NOSIGNAL)
			}
			unix.Close(client)
		}
	}()
}

func TestNothingOfAnotherUsersStackIsTaken(t *testing.T) {
	dir := folderOf(t, stranger)
	answers(t, dir, "7.sock", stranger, map[string]string{"ticket": "ok", "alive": "ok", "guests": "ok", "down": "ok 3",
		"status": `{"name":"x\u001b[2J","told":{"file":"/tmp/evil.toml"}}`})
	if err := os.Symlink("7.sock", filepath.Join(dir, "web.stack")); err != nil {
		t.Fatal(err)
	}
	_, err := FindOwn("web", "exec", "web", "--", "sh", "-c", "id; id")
	if !errors.As(err, &RefusedError{}) || !strings.Contains(err.Error(), "belongs to user 65534") ||
		!strings.HasSuffix(err.Error(), " env GUISE_RUNDIR="+dir+" guise exec web -- sh -c 'id; id'") {
		t.Error(err)
	}
	stack, err := FindStack("web")
	if err != nil || !stack.Foreign() {
		t.Fatalf("%+v, %v", stack, err)
	}
	c, err := stack.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for what, take := range map[string]func() (*os.File, error){"ticket": c.Ticket, "alive": c.Alive, "guests": c.Guests} {
		if file, err := take(); err == nil {
			t.Errorf("the %s was taken: %v", what, file)
		}
	}
	// What it says may be read.
	status, err := c.Status(0)
	if err != nil || status.Name != `"x\x1b[2J"` {
		t.Errorf("%+v, %v", status, err)
	}
	if n, err := c.Down(0); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestWhoListensMustBeTheOwnerOfTheFolder(t *testing.T) {
	for _, c := range []struct{ folder, listener int }{{0, stranger}, {stranger, 0}, {stranger, stranger - 1}} {
		t.Run(fmt.Sprintf("%d_%d", c.folder, c.listener), func(t *testing.T) {
			dir := folderOf(t, c.folder)
			elsewhere := t.TempDir()
			os.Chmod(elsewhere, 0o755)
			os.Chown(elsewhere, c.listener, -1)
			os.Chmod(filepath.Dir(elsewhere), 0o755)
			answers(t, elsewhere, "7.sock", c.listener, map[string]string{"status": "{}"})
			if err := os.Symlink(filepath.Join(elsewhere, "7.sock"), filepath.Join(dir, "7.sock")); err != nil {
				t.Fatal(err)
			}
			stack, err := FindStack("7")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stack.Dial(); !errors.As(err, &RefusedError{}) || !strings.Contains(err.Error(), "another user listens") {
				t.Error(err)
			}
		})
	}
}

func TestNamesThatGuiseWouldNotMakeAreNoStacks(t *testing.T) {
	dir := folderOf(t, os.Geteuid())
	for _, name := range []string{"1.sock", "web.stack", "$(id).sock", "2\n.sock", "x.sock", "\x1b[2J.stack", "a b.stack", "-x.stack", ".stack", "3.sock.new"} {
		if err := os.Symlink("1.sock", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"up.stack": "../1.sock", "abs.stack": "/run/1.sock"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, s := range Stacks() {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "web" {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNoSocketIsNotSwept(t *testing.T) {
	dir := folderOf(t, os.Geteuid())
	path := filepath.Join(dir, "7.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	SweepSockets()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestARefusalIsPlain(t *testing.T) {
	dir := folderOf(t, os.Geteuid())
	answers(t, dir, "7.sock", 0, map[string]string{"down": "error no\nguise: \x1b[2Jforged"})
	stack, err := FindStack("7")
	if err != nil {
		t.Fatal(err)
	}
	c, err := stack.dial(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Down(0); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("%q", err)
	}
}
