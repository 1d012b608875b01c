// SPDX-License-Identifier: GPL-2.0-only

package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const stranger = 65534

// folder makes the runtime folder of this test.
func folder(t *testing.T, mode os.FileMode, owner int) string {
	t.Helper()
	if owner != os.Geteuid() && os.Geteuid() != 0 {
		t.Skip("skipped: giving a folder to another user takes root")
	}
	dir := filepath.Join(t.TempDir(), "guise")
	t.Setenv("GUISE_RUNDIR", dir)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, owner, -1), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFolderOfAnotherUserIsRefusedThoughItsOwnerHoldsTheLock(t *testing.T) {
	dir := folder(t, 0o755, stranger)
	theirs, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if err := unix.Flock(int(theirs.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Error(err)
	}
}

func TestFolderInWhichOthersMayWriteIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o720, 0o770, 0o702, 0o777, os.ModeSticky | 0o777} {
		dir := folder(t, mode, os.Geteuid())
		if _, err := Lock(); err == nil || !strings.Contains(err.Error(), "other users may write") {
			t.Errorf("%o: %v", mode, err)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("%o is opened", mode)
		}
	}
}

func TestFolderThatIsALinkIsRefused(t *testing.T) {
	dir := folder(t, 0o700, os.Geteuid())
	link := dir + ".link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link); err == nil {
		t.Error("it was opened")
	}
}

func TestFolderThatAnotherUserJustGaveUpIsMadeAnew(t *testing.T) {
	dir := folder(t, 0o700, stranger)
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if same, err := f.acquire(time.Now()); same || err != nil {
		t.Errorf("the folder that is gone: %v, %v", same, err)
	}
	l, err := Lock()
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
}

// Another user may own a folder above it.
func TestWhatIsReachedIsInTheFolderThatWasOpened(t *testing.T) {
	dir := folder(t, os.ModeSticky|0o700, os.Geteuid())
	l, err := Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, os.ModeSticky|0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.At("here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + ".old/here"); err != nil {
		t.Error(err)
	}
	_, err = os.Stat(l.At("gone"))
	if got := l.Explain(err).Error(); got != "stat "+dir+"/gone: no such file or directory" {
		t.Errorf("got %q", got)
	}
	l.Unlock()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the other folder: %v", err)
	}
}
