// SPDX-License-Identifier: GPL-2.0-only

// Package access has what this user may do to the host, and the error for what
// the user may not.
package access

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Elevated reports whether this program has more rights than its caller, by its file: the host's
// kernel says so to each program.
func Elevated() bool {
	const secure = 23 // AT_SECURE
	vector, err := unix.Auxv()
	return err != nil || slices.ContainsFunc(vector, func(entry [2]uintptr) bool { return entry[0] == secure && entry[1] != 0 })
}

// TrustedFile returns why a file or folder may not be executed or believed as guise's own, or nil: it
// must be root's, this user's, or of whoever has this program, and no other user may write it.
//
// Limit: who may rename a folder above it can put another one there later.
func TrustedFile(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st, self unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("other users may write it (mode %o)", st.Mode&0o7777)
	}
	if st.Uid == 0 || st.Uid == uint32(unix.Geteuid()) || unix.Stat("/proc/self/exe", &self) == nil && st.Uid == self.Uid {
		return nil
	}
	return fmt.Errorf("it belongs to user %d", st.Uid)
}

// OpenToRead opens what another user may have put there: no link, and no pipe that it would wait at. What is
// decided by the file's state holds for what is read. folder: that which has the file, if it is open already; or
// unix.AT_FDCWD.
func OpenToRead(folder int, path string) (file *os.File, st unix.Stat_t, err error) {
	name := path
	if folder != unix.AT_FDCWD {
		name = filepath.Base(path)
	}
	fd, err := unix.Openat(folder, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file = os.NewFile(uintptr(fd), path)
	if err := unix.Fstat(fd, &st); err != nil {
		file.Close()
		return nil, st, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return file, st, nil
}

// RootOnly returns why others than root can change what is executed by that path, or nil. The path is
// absolute, without links. Root's group counts as root.
func RootOnly(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &os.PathError{Op: "stat", Path: at, Err: err}
		}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			return fmt.Errorf("%s is a link", at)
		case st.Uid != 0:
			return fmt.Errorf("%s is of user %d", at, st.Uid)
		case st.Mode&0o002 != 0:
			return fmt.Errorf("everybody may write %s (mode %o)", at, st.Mode&0o7777)
		case st.Mode&0o020 != 0 && st.Gid != 0:
			return fmt.Errorf("group %d may write %s (mode %o)", st.Gid, at, st.Mode&0o7777)
		}
		if at == "/" || at == "." {
			return nil
		}
	}
}

// Refusal is an error that does not occur if the user asks for something else.
type Refusal struct{ error }

func (r Refusal) Unwrap() error { return r.error }

// Refuse returns a Refusal with this sentence.
func Refuse(format string, args ...any) error {
	return Refusal{fmt.Errorf(format, args...)}
}

// Capability reports whether this thread has the capability (unix.CAP_...).
func Capability(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}
