// SPDX-License-Identifier: GPL-2.0-only

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Where the journals lie: $GUISE_RUNDIR, or /run/guise for who may write there,
// or else $XDG_RUNTIME_DIR/guise. The directory exists only while there are
// journals in it; its lock is flock(2) on the directory itself, so that not
// even a lock file is left behind.
const systemDirectory = "/run/guise"

// lockPatience is how long to wait for another guise that holds the lock. It
// holds it for some milliseconds, so one that still has it then is stuck.
const lockPatience = 10 * time.Second

// ErrNone is returned when no directory exists, and none was to be made.
var ErrNone = errors.New("there are no journals")

// Locked is the directory, locked by this process.
type Locked struct {
	path string
	fd   int
}

// Directory is the path of this user's journals.
func Directory() string {
	if dir := os.Getenv("GUISE_RUNDIR"); dir != "" {
		if absolute, err := filepath.Abs(dir); err == nil {
			return absolute
		}
		return dir
	}
	own := os.Getenv("XDG_RUNTIME_DIR")
	if own == "" || writable(systemDirectory) || writable(filepath.Dir(systemDirectory)) {
		return systemDirectory
	}
	return filepath.Join(own, "guise")
}

func writable(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil
}

// Lock makes the directory of the journals if there is none, and locks it.
func Lock() (*Locked, error) {
	path := Directory()
	for {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("cannot make %s, where guise notes what it changes on the host: %w; "+
				"nothing was changed ($GUISE_RUNDIR names another place)", path, errors.Unwrap(err))
		}
		// Another guise may remove the directory between the two.
		l, err := LockExisting(path)
		if !errors.Is(err, ErrNone) {
			return l, err
		}
	}
}

// LockExisting locks a directory of journals; ErrNone if there is none.
func LockExisting(path string) (*Locked, error) {
	deadline := time.Now().Add(lockPatience)
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch {
		case err == unix.ENOENT:
			return nil, ErrNone
		case err != nil:
			return nil, fmt.Errorf("cannot open %s: %w", path, err)
		}
		l := &Locked{path, fd}
		same, err := l.acquire(deadline)
		if err == nil && same {
			return l, nil
		}
		unix.Close(fd)
		if err != nil {
			return nil, err
		}
	}
}

// acquire waits for the lock, and says whether the directory it was taken on
// still is the one that has the path.
func (l *Locked) acquire(deadline time.Time) (bool, error) {
	for {
		err := unix.Flock(l.fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return false, fmt.Errorf("cannot lock %s: %w", l.path, err)
		}
		if time.Now().After(deadline) {
			return false, fmt.Errorf("%s has been locked for %v by another guise that does not go on; "+
				"`fuser %s` names it", l.path, lockPatience, l.path)
		}
		time.Sleep(5 * time.Millisecond)
	}
	var ours, there unix.Stat_t
	if err := unix.Fstat(l.fd, &ours); err != nil {
		return false, fmt.Errorf("cannot read %s: %w", l.path, err)
	}
	if ours.Uid != uint32(os.Geteuid()) {
		// Whoever owns it could have us delete what he names.
		return false, fmt.Errorf("%s belongs to user %d, not to you (%d); remove it, or name another place in $GUISE_RUNDIR",
			l.path, ours.Uid, os.Geteuid())
	}
	if err := unix.Lstat(l.path, &there); err != nil {
		return false, nil
	}
	return ours.Ino == there.Ino && ours.Dev == there.Dev, nil
}

// Unlock removes the directory if nothing is left in it, and unlocks it.
func (l *Locked) Unlock() {
	unix.Rmdir(l.path)
	unix.Close(l.fd)
}
