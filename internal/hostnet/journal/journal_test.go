// SPDX-License-Identifier: GPL-2.0-only

package journal

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// directory gives the test a directory of journals, which is not made yet.
func directory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "guise")
	t.Setenv("GUISE_RUNDIR", dir)
	return dir
}

func lock(t *testing.T) *Locked {
	t.Helper()
	l, err := Lock()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func saved(t *testing.T, l *Locked, base string, steps ...Step) *Journal {
	t.Helper()
	j, err := l.New(base)
	if err != nil {
		t.Fatal(err)
	}
	j.Steps = steps
	if err := l.Save(j); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJournalIsReadAsItWasWritten(t *testing.T) {
	directory(t)
	l := lock(t)
	defer l.Unlock()
	steps := []Step{{Kind: Table, Family: "ip", Name: "guise_x"}, {Kind: Sysctl, Key: "net/ipv6/conf/eth0.7/accept_ra", Set: "1", Old: "0"}, {Kind: Device, Name: "guise0", Index: 9}}
	j := saved(t, l, "x", steps...)
	if second := saved(t, l, "x"); second.ID() != "x_2" {
		t.Errorf("a second x is %q", second.ID())
	}
	got, err := l.Load(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 3 || got.Steps[0] != steps[0] || got.Steps[1] != steps[1] || got.Steps[2] != steps[2] {
		t.Errorf("got %+v", got.Steps)
	}
	if got.Owner != j.Owner || got.Namespace != j.Namespace || got.Expired() || got.Abandoned() {
		t.Errorf("got %+v, expired %v, abandoned %v", got, got.Expired(), got.Abandoned())
	}
}

func TestDirectoryExistsOnlyWhileThereAreJournals(t *testing.T) {
	dir := directory(t)
	if _, err := LockExisting(dir); !errors.Is(err, ErrNone) {
		t.Errorf("locking nothing: %v", err)
	}
	l := lock(t)
	j := saved(t, l, "x")
	l.Unlock()
	if _, err := os.Stat(j.Path()); err != nil {
		t.Error(err)
	}
	l = lock(t)
	if err := l.Remove(j); err != nil {
		t.Error(err)
	}
	if err := l.Remove(j); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
	l.Unlock()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestDirectoryThatWasThereStays(t *testing.T) {
	dir := directory(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := lock(t)
		j := saved(t, l, "x")
		if err := l.Remove(j); err != nil {
			t.Error(err)
		}
		l.Unlock()
		if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Fatalf("the user's own directory: %v, %v", info, err)
		}
	}
}

// Many at once lock, and each in turn removes the directory under the others.
func TestLockIsExclusiveThoughTheDirectoryComesAndGoes(t *testing.T) {
	directory(t)
	var inside, most int
	var guard sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 25 {
				l, err := Lock()
				if err != nil {
					t.Error(err)
					return
				}
				guard.Lock()
				inside++
				most = max(most, inside)
				guard.Unlock()
				guard.Lock()
				inside--
				guard.Unlock()
				l.Unlock()
			}
		}()
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d had the lock at once", most)
	}
}

// directoryOf makes the directory of journals, and gives it to another user.
func directoryOf(t *testing.T, user int, mode os.FileMode) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: giving a directory to another user takes root")
	}
	dir := directory(t)
	if err := errors.Join(os.Mkdir(dir, mode), os.Chown(dir, user, user)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	directoryOf(t, 65534, 0o755)
	if l, err := Lock(); err == nil {
		l.Unlock()
		t.Error("it was trusted")
	} else if !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Error(err)
	}
}

func TestNothingIsChangedWithoutAPlaceToNoteIt(t *testing.T) {
	t.Setenv("GUISE_RUNDIR", "/proc/guise")
	_, err := Lock()
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "/proc/guise") {
		t.Error(err)
	}
}

func TestFullDiskKeepsTheOldJournal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting a small file system takes root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k,mode=700"); err != nil {
		t.Skipf("skipped: no tmpfs can be mounted: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	t.Setenv("GUISE_RUNDIR", dir)
	l := lock(t)
	defer l.Unlock()
	j := saved(t, l, "x", Step{Kind: Device, Name: "guise7", Index: 1})
	for range 1000 {
		j.Steps = append(j.Steps, Step{Kind: Device, Name: "guise8", Index: 2})
	}
	if err := l.Save(j); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	old, err := l.Load(j.Path())
	if err != nil || len(old.Steps) != 1 || old.Steps[0].Name != "guise7" {
		t.Errorf("the old journal: %+v, %v", old, err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 {
		t.Errorf("files: %q", left)
	}
}

func TestOwnerIsKnownByPidAndStart(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := ProcessOf(cmd.Process.Pid)
	if err != nil || !p.Alive() {
		t.Errorf("a living process: %+v, %v", p, err)
	}
	if (Process{p.PID, p.Start + 1}).Alive() {
		t.Error("another process of that pid counts as the owner")
	}
	cmd.Process.Kill()
	// A zombie until it is waited for; the wait itself is what makes it known.
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, p.PID, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("a zombie counts as alive")
	}
	cmd.Wait()
	if p.Alive() {
		t.Error("a dead process counts as alive")
	}
}

func TestJournalOfAnEarlierBootIsExpired(t *testing.T) {
	directory(t)
	l := lock(t)
	defer l.Unlock()
	j := saved(t, l, "x")
	j.Boot = "another"
	if !j.Expired() {
		t.Error("it is not")
	}
	j.PIDNamespace++
	j.Owner.PID = 1 << 30
	if j.Abandoned() {
		t.Error("a pid of another pid namespace was looked for in this one")
	}
}

func TestSharedSysctlKeepsItsFirstValue(t *testing.T) {
	directory(t)
	l := lock(t)
	defer l.Unlock()
	key := Step{Kind: Sysctl, Key: "net/ipv4/conf/eth0/forwarding", Set: "1", Old: "0"}
	first := saved(t, l, "first", key, Step{Kind: Device, Name: "guise0"})
	second := saved(t, l, "second")
	elsewhere := saved(t, l, "elsewhere")
	elsewhere.Namespace.Inode++
	all := []*Journal{first, second, elsewhere}
	second.Adopt(all)
	if len(second.Steps) != 1 || second.Steps[0] != key {
		t.Errorf("adopted %+v", second.Steps)
	}
	second.Adopt(all)
	if len(second.Steps) != 1 {
		t.Errorf("adopted twice: %+v", second.Steps)
	}
	elsewhere.Adopt(all)
	if len(elsewhere.Steps) != 0 {
		t.Errorf("adopted from another network namespace: %+v", elsewhere.Steps)
	}
	if !first.Shared(all, key.Key) || !second.Shared(all, key.Key) {
		t.Error("two need it, and it is not shared")
	}
	if second.Shared([]*Journal{second, elsewhere}, key.Key) {
		t.Error("one needs it, and it is shared")
	}
}

func TestBrokenJournalsAreNamedAndTheOthersRead(t *testing.T) {
	dir := directory(t)
	l := lock(t)
	defer l.Unlock()
	saved(t, l, "good")
	for name, text := range map[string]string{"bad.json": "{", "new.json": `{"version": 99}`, "note.txt": "?"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.List()
	if len(all) != 1 || all[0].ID() != "good" {
		t.Errorf("got %d journals", len(all))
	}
	if err == nil || !strings.Contains(err.Error(), "bad.json is no journal") || !strings.Contains(err.Error(), "version 99") ||
		strings.Contains(err.Error(), "note.txt") {
		t.Error(err)
	}
}
