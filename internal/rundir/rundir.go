// SPDX-License-Identifier: GPL-2.0-only

// Package rundir has the runtime folder of a user. It has files that last as long as stacks:
// journals of what was changed on the host (internal/hostnet/journal), and the sockets
// through which commands reach holders (internal/holder).
//
// It is $GUISE_RUNDIR; otherwise /run/guise if the user may write there, otherwise
// $XDG_RUNTIME_DIR/guise, otherwise /tmp/guise-UID. guise marks a folder that it has made by
// the sticky bit, and removes it when it is empty; it never removes one that was there before.
// The lock is flock(2) on the folder itself, so that no lock file is left behind. No other
// user may be able to write in it: a folder in /tmp could belong to any user.
package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const systemDirectory = "/run/guise"

// madeByGuise is the mode bit of a folder that guise has made, and may remove. mkdir(2) sets it
// at once. In a folder in which only one user writes it has no other effect
// (holder/control/run_folder.c).
const madeByGuise = unix.S_ISVTX

// lockPatience is how long to wait for another guise that holds the lock. A guise holds it
// for some milliseconds, so one that still holds it after this time is stopped or hangs.
const lockPatience = 10 * time.Second

// ErrNone is returned by LockExisting when there is no folder.
var ErrNone = errors.New("there is no runtime folder")

// Locked is the folder, locked by this process.
type Locked struct {
	path string
	fd   int
}

// Path returns the path of this user's folder.
func Path() string {
	if dir := os.Getenv("GUISE_RUNDIR"); dir != "" {
		if absolute, err := filepath.Abs(dir); err == nil {
			return absolute
		}
		return dir
	}
	if writable(systemDirectory) || writable(filepath.Dir(systemDirectory)) {
		return systemDirectory
	}
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) {
		return filepath.Join(own, "guise")
	}
	return fmt.Sprintf("/tmp/guise-%d", os.Geteuid())
}

func writable(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil
}

// Lock makes the folder if there is none, and locks it.
func Lock() (*Locked, error) {
	path := Path()
	for {
		if err := unix.Mkdir(path, 0o700|madeByGuise); err != nil && err != unix.EEXIST {
			return nil, fmt.Errorf("cannot make %s, where guise notes its stacks, and what it changes on the host: %w; "+
				"nothing was changed ($GUISE_RUNDIR names another place)", path, err)
		}
		// Another guise may remove the folder after it was made and before it is locked.
		l, err := LockExisting(path)
		if !errors.Is(err, ErrNone) {
			return l, err
		}
	}
}

// LockExisting locks a folder; ErrNone if there is none.
func LockExisting(path string) (*Locked, error) {
	deadline := time.Now().Add(lockPatience)
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch {
		case err == unix.ENOENT:
			return nil, ErrNone
		case err != nil:
			return nil, fmt.Errorf("cannot open %s: %w; expected a folder of yours ($GUISE_RUNDIR names another place)", path, err)
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

// acquire waits for the lock, and reports whether the path still leads to the locked
// folder.
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
			return false, fmt.Errorf("%s has been locked for %v by another guise that is stopped or hangs; "+
				"`fuser %s` names it", l.path, lockPatience, l.path)
		}
		time.Sleep(5 * time.Millisecond)
	}
	var ours, there unix.Stat_t
	if err := unix.Fstat(l.fd, &ours); err != nil {
		return false, fmt.Errorf("cannot read %s: %w", l.path, err)
	}
	// First of all, because the folder may have been removed and made again by another user.
	if err := unix.Lstat(l.path, &there); err != nil || ours.Ino != there.Ino || ours.Dev != there.Dev {
		return false, nil
	}
	if ours.Uid != uint32(os.Geteuid()) {
		// By a journal in it, its owner could make guise change and delete things.
		return false, fmt.Errorf("%s belongs to user %d, not to you (%d); remove it, or name another place in $GUISE_RUNDIR",
			l.path, ours.Uid, os.Geteuid())
	}
	if ours.Mode&0o002 != 0 {
		return false, fmt.Errorf("other users may write in %s (mode %o); `chmod o-w %s` forbids that",
			l.path, ours.Mode&0o7777, l.path)
	}
	return true, nil
}

// Path is that of the folder.
func (l *Locked) Path() string { return l.path }

// Unlock removes the folder if guise made it and nothing is left in it, and unlocks it.
func (l *Locked) Unlock() {
	var st unix.Stat_t
	if unix.Fstat(l.fd, &st) == nil && st.Mode&madeByGuise != 0 {
		unix.Rmdir(l.path)
	}
	unix.Close(l.fd)
}
