// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/rundir"
	"guise/internal/suggest"
)

// Each stack has a control socket in the user's runtime folder (internal/rundir):
//
//	4711.sock	the name is the pid of the process that started the stack
//	web.stack	for a named stack: a symbolic link to its socket
//
// The command line makes both, under the folder's lock, and gives the listening
// socket to the holder, which removes them at its end. A socket on which no process
// listens is left from a holder that was killed: the next guise command removes it.
const (
	socketSuffix = ".sock"
	nameSuffix   = ".stack"
)

// Socket is the control socket of a stack that is about to be made.
type Socket struct {
	File *os.File // bound and listening
	Path string
	Name string // the path of the symbolic link, or ""

	before string // the file name of the socket that had the name before
}

// ErrNameTaken is wrapped by the error when another stack has the name.
var ErrNameTaken = errors.New("there is a stack")

// Reserve makes the control socket of a stack of that name, or of one without a
// name. If several processes want a name at the same time, one gets it.
func Reserve(name string) (*Socket, error) { return reserve(name, false) }

// Succeed is like Reserve, for a stack that will take over the name of another one.
func Succeed(name string) (*Socket, error) { return reserve(name, true) }

func reserve(name string, succeed bool) (s *Socket, err error) {
	l, err := rundir.Lock()
	if err != nil {
		return nil, err
	}
	defer l.Unlock()
	sweepSockets(l)
	s = &Socket{}
	if name != "" {
		s.Name = filepath.Join(l.Path(), name+nameSuffix)
		s.before, err = os.Readlink(s.Name)
		if err == nil && !succeed {
			return nil, fmt.Errorf("%w %s already, or it is just being started; guise down %s ends it, guise ls lists all",
				ErrNameTaken, name, name)
		}
	}
	for i := 1; s.File == nil; i++ {
		own := strconv.Itoa(os.Getpid())
		if i > 1 { // a later process can get the pid of one whose holder still runs
			own = fmt.Sprintf("%d_%d", os.Getpid(), i)
		}
		s.Path = filepath.Join(l.Path(), own+socketSuffix)
		if s.File, err = listenAt(s.Path); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("cannot make the control socket %s: %w; $GUISE_RUNDIR names another place", s.Path, err)
		}
	}
	if s.Name != "" && s.before == "" {
		if err := os.Symlink(filepath.Base(s.Path), s.Name); err != nil {
			s.File.Close()
			os.Remove(s.Path)
			return nil, fmt.Errorf("cannot make %s: %w; $GUISE_RUNDIR names another place", s.Name, errors.Unwrap(err))
		}
	}
	return s, nil
}

// TakeOver gives the name to this stack, even if another one has it now.
func (s *Socket) TakeOver() error {
	l, err := rundir.LockExisting(filepath.Dir(s.Path))
	if err != nil {
		return err
	}
	defer l.Unlock()
	draft := s.Name + ".new"
	os.Remove(draft)
	if err := os.Symlink(filepath.Base(s.Path), draft); err != nil {
		return err
	}
	if err := os.Rename(draft, s.Name); err != nil {
		os.Remove(draft)
		return err
	}
	return nil
}

// Files returns the socket, which a holder inherits; none if there is no socket.
func (s *Socket) Files() []*os.File {
	if s == nil {
		return nil
	}
	return []*os.File{s.File}
}

// Close closes this process's copy of the socket: only the holder may listen.
func (s *Socket) Close() {
	if s != nil {
		s.File.Close()
	}
}

// Remove removes the socket, if no holder could be started, or if it did not do so.
func (s *Socket) Remove() {
	if s == nil {
		return
	}
	s.File.Close()
	l, err := rundir.LockExisting(filepath.Dir(s.Path))
	if err != nil {
		return
	}
	defer l.Unlock()
	if target, err := os.Readlink(s.Name); err == nil && target == filepath.Base(s.Path) {
		os.Remove(s.Name)
	}
	os.Remove(s.Path)
}

func listenAt(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = atPath(path, func(address unix.Sockaddr) error { return unix.Bind(fd, address) })
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// atPath calls f with the address of a socket at path. The path may be longer than an
// address.
func atPath(path string, f func(unix.Sockaddr) error) error {
	const longest = 107
	if len(path) <= longest {
		return f(&unix.SockaddrUnix{Name: path})
	}
	folder, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	return f(&unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder, filepath.Base(path))})
}

// connect makes a connection to the socket at path. ECONNREFUSED: no process listens. EAGAIN,
// after that time: the queue of connections is full; the process may be stopped, for example.
func connect(path string, patience time.Duration) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout)
	if err == nil {
		err = atPath(path, func(address unix.Sockaddr) error { return unix.Connect(fd, address) })
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// sweepSockets removes the sockets on which no process listens, and the names of sockets
// that do not exist any more.
func sweepSockets(l *rundir.Locked) {
	sockets, names := list(l.Path())
	for _, path := range sockets {
		fd, err := connect(path, time.Millisecond)
		if err == nil {
			unix.Close(fd)
		} else if errors.Is(err, unix.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	for _, path := range names {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			os.Remove(path)
		}
	}
}

// SweepSockets removes what holders that were killed have left behind.
func SweepSockets() {
	sockets, names := list(rundir.Path())
	if len(sockets) == 0 && len(names) == 0 {
		return
	}
	if l, err := rundir.LockExisting(rundir.Path()); err == nil {
		sweepSockets(l)
		l.Unlock()
	}
}

func list(folder string) (sockets, names []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case strings.HasSuffix(path, socketSuffix):
			sockets = append(sockets, path)
		case strings.HasSuffix(path, nameSuffix):
			names = append(names, path)
		}
	}
	return sockets, names
}

// Stack is a stack that commands can reach: its name, or the pid of the process that
// started it, and the path of its socket.
type Stack struct {
	ID    string
	Named bool
	path  string
}

// Stacks returns those of this user, the named ones first.
func Stacks() []Stack {
	sockets, names := list(rundir.Path())
	var stacks []Stack
	named := map[string]bool{}
	for _, path := range names {
		target, err := os.Readlink(path)
		if err != nil {
			continue
		}
		named[target] = true
		id := strings.TrimSuffix(filepath.Base(path), nameSuffix)
		stacks = append(stacks, Stack{ID: id, Named: true, path: filepath.Join(filepath.Dir(path), filepath.Base(target))})
	}
	for _, path := range sockets {
		if base := filepath.Base(path); !named[base] {
			stacks = append(stacks, Stack{ID: strings.TrimSuffix(base, socketSuffix), path: path})
		}
	}
	return stacks
}

// NoStackError is the error that there is no stack of that name or number.
type NoStackError struct{ text string }

func (e NoStackError) Error() string { return e.text }

// FindStack returns the stack of that name, or of the process with that number.
func FindStack(id string) (Stack, error) {
	folder := rundir.Path()
	stacks := Stacks()
	var ids []string
	for _, s := range stacks {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	if _, err := os.ReadDir(folder); errors.Is(err, fs.ErrPermission) {
		return Stack{}, NoStackError{fmt.Sprintf("%s belongs to another user, whose stacks only that user and root may use", folder)}
	}
	if len(ids) == 0 {
		return Stack{}, NoStackError{fmt.Sprintf("there is no stack %q: you have none (in %s); guise up FILE starts one", id, folder)}
	}
	return Stack{}, NoStackError{fmt.Sprintf("there is no stack %q; %s", id, suggest.Hint(id, ids))}
}

// Number is the number of the stack, which identifies it without a name.
func (s Stack) Number() string { return strings.TrimSuffix(filepath.Base(s.path), socketSuffix) }
