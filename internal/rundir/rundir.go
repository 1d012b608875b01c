// SPDX-License-Identifier: GPL-2.0-only

// Package rundir has the runtime folder of a user. It has files that last as long as stacks:
// journals of what was changed on the host (internal/hostnet/journal), and the sockets
// through which commands reach holders (internal/holder).
//
// It is $GUISE_RUNDIR; otherwise /run/guise if the user may write there, otherwise
// $XDG_RUNTIME_DIR/guise, otherwise /tmp/guise-UID. guise marks a folder that it has made by
// the sticky bit, and removes it when it is empty; it never removes one that was there before.
// The lock is flock(2) on the folder itself, so that no lock file is left behind.
//
// What is in the folder makes guise act: it undoes journals, removes sockets on which no process
// listens, and connects to the others. So it counts whose the folder is, and that nobody else
// may write in it, nor the user's group: a folder in /tmp could belong to any user. Both are asked
// of the folder that was opened (fstat), and what is in it is reached through that descriptor
// (At): a name may lead to another folder a moment later.
//
// Limit: a user who may read the folder can lock it, and commands then end with a sentence
// after lockPatience. guise makes it readable for its owner alone.
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// ErrNone is returned by Open and LockExisting when there is no folder.
var ErrNone = errors.New("there is no runtime folder")

// ErrForeign is wrapped by the error of Lock and LockExisting for a folder of another user.
var ErrForeign = errors.New("expected a folder of your own ($GUISE_RUNDIR names another place)")

// Folder is a runtime folder that is open, and in which only its owner may write.
type Folder struct {
	path  string
	fd    int
	owner uint32
}

// Locked is this user's folder, locked by this process.
type Locked struct{ *Folder }

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

// Open opens a folder, which may be another user's; ErrNone if there is none.
func Open(path string) (*Folder, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT:
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("cannot open %s: %w; expected a folder of yours ($GUISE_RUNDIR names another place)", path, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err != nil {
		err = fmt.Errorf("cannot read %s: %w", path, err)
	} else if st.Mode&0o022 != 0 {
		err = fmt.Errorf("other users may write in %s (mode %o); `chmod go-w %s` forbids that", path, st.Mode&0o7777, path)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Folder{path, fd, st.Uid}, nil
}

// Path is that of the folder, for messages and for other programs.
func (f *Folder) Path() string { return f.path }

// Owner is the user whose folder it is.
func (f *Folder) Owner() int { return int(f.owner) }

// At is the path of what has that name in the folder that is open, wherever its own path leads.
func (f *Folder) At(name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", f.fd, name) }

// Explain returns the error of what was done with a path of At, with the folder's own path in it.
func (f *Folder) Explain(err error) error {
	named := func(path string) string { return strings.Replace(path, f.At(""), f.path+"/", 1) }
	var one *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &one):
		return &fs.PathError{Op: one.Op, Path: named(one.Path), Err: one.Err}
	case errors.As(err, &two):
		return &os.LinkError{Op: two.Op, Old: named(two.Old), New: named(two.New), Err: two.Err}
	}
	return err
}

// FD is the descriptor of the folder.
func (f *Folder) FD() int { return f.fd }

// Close closes the folder.
func (f *Folder) Close() { unix.Close(f.fd) }

// isThere reports whether the path still leads to the folder.
func (f *Folder) isThere() bool {
	var ours, there unix.Stat_t
	return unix.Fstat(f.fd, &ours) == nil && unix.Lstat(f.path, &there) == nil && ours.Ino == there.Ino && ours.Dev == there.Dev
}

// LockExisting locks this user's folder at that path; ErrNone if there is none.
func LockExisting(path string) (*Locked, error) {
	deadline := time.Now().Add(lockPatience)
	for {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		same, err := f.acquire(deadline)
		if err == nil && same {
			return &Locked{f}, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// acquire waits for the lock, and reports whether the path still leads to the locked
// folder.
func (f *Folder) acquire(deadline time.Time) (bool, error) {
	// Before the lock, which the owner of another folder could hold for ever.
	if f.Owner() != os.Geteuid() {
		if !f.isThere() { // another user has just given it up
			return false, nil
		}
		// By a journal in it, its owner could make guise change and delete things.
		return false, fmt.Errorf("%s belongs to user %d, not to you (%d); %w", f.path, f.owner, os.Geteuid(), ErrForeign)
	}
	for {
		err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f.isThere(), nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return false, fmt.Errorf("cannot lock %s: %w", f.path, err)
		}
		if time.Now().After(deadline) {
			return false, fmt.Errorf("%s has been locked for %v by another guise that is stopped or hangs; "+
				"`fuser %s` names it", f.path, lockPatience, f.path)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Unlock removes the folder if guise made it and nothing is left in it, and unlocks it.
func (l *Locked) Unlock() {
	var st unix.Stat_t
	if unix.Fstat(l.fd, &st) == nil && st.Mode&madeByGuise != 0 && l.isThere() {
		unix.Rmdir(l.path)
	}
	l.Close()
}
