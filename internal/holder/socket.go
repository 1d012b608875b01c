// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plain"
	"guise/internal/plan"
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
//
// The folder is reached through a descriptor (rundir.Folder), and who listens must be its owner:
// a link could lead to a socket of another program. Names that guise would not have made are not
// looked at, so that what is listed, completed and hinted at is plain text.
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
		s.before, err = os.Readlink(l.At(name + nameSuffix))
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
		if s.File, err = listenAt(l.At(own + socketSuffix)); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("cannot make the control socket %s: %w; $GUISE_RUNDIR names another place", s.Path, err)
		}
	}
	if s.Name != "" && s.before == "" {
		if err := os.Symlink(filepath.Base(s.Path), l.At(filepath.Base(s.Name))); err != nil {
			s.File.Close()
			os.Remove(l.At(filepath.Base(s.Path)))
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
	name := l.At(filepath.Base(s.Name))
	draft := name + ".new"
	os.Remove(draft)
	if err := os.Symlink(filepath.Base(s.Path), draft); err != nil {
		return l.Explain(err)
	}
	if err := os.Rename(draft, name); err != nil {
		os.Remove(draft)
		return l.Explain(err)
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
	name, socket := l.At(filepath.Base(s.Name)), filepath.Base(s.Path)
	if target, err := os.Readlink(name); s.Name != "" && err == nil && target == socket {
		os.Remove(name)
	}
	os.Remove(l.At(socket))
}

// listenAt makes a socket at a path of rundir.Folder.At: others may be longer than an address.
func listenAt(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// connect makes a connection to the socket at path, one of rundir.Folder.At. ECONNREFUSED: no process listens. EAGAIN,
// after that time: the queue of connections is full; the process may be stopped, for example.
func connect(path string, patience time.Duration) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
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
	sockets, names := list(l.Folder)
	for _, socket := range sockets {
		fd, err := connect(l.At(socket), time.Millisecond)
		if err == nil {
			unix.Close(fd)
		} else if errors.Is(err, unix.ECONNREFUSED) && isOf(l.At(socket), fs.ModeSocket) {
			os.Remove(l.At(socket))
		}
	}
	for _, name := range names {
		if _, err := os.Stat(l.At(name)); errors.Is(err, fs.ErrNotExist) && isOf(l.At(name), fs.ModeSymlink) {
			os.Remove(l.At(name))
		}
	}
}

// isOf reports whether it is a file of that type: any other is not guise's.
func isOf(path string, kind fs.FileMode) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == kind
}

// SweepSockets removes what holders that were killed have left behind.
func SweepSockets() {
	f, err := rundir.Open(rundir.Path())
	if err != nil {
		return
	}
	sockets, names := list(f)
	f.Close()
	if len(sockets) == 0 && len(names) == 0 {
		return
	}
	if l, err := rundir.LockExisting(rundir.Path()); err == nil {
		sweepSockets(l)
		l.Unlock()
	}
}

// socketName is the number of a stack, and the end of its socket's name.
var socketName = regexp.MustCompile(`^[0-9]{1,10}(_[0-9]{1,10})?\` + socketSuffix + `$`)

// list returns the names of what is in the folder, if guise would have made it.
func list(f *rundir.Folder) (sockets, names []string) {
	entries, err := os.ReadDir(f.At("."))
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		stack, named := strings.CutSuffix(e.Name(), nameSuffix)
		switch {
		case socketName.MatchString(e.Name()):
			sockets = append(sockets, e.Name())
		case named && plan.CheckName(stack) == nil:
			names = append(names, e.Name())
		}
	}
	return sockets, names
}

// Stack is a stack that commands can reach: its name, or the pid of the process that
// started it, and its socket.
type Stack struct {
	ID     string
	Named  bool
	Owner  int // the user whose folder it is in
	folder string
	socket string
}

// Stacks returns those of this user's folder, the named ones first. Root may have been led to
// the folder of another user ($GUISE_RUNDIR), and then they are that user's.
func Stacks() []Stack {
	f, err := rundir.Open(rundir.Path())
	if err != nil {
		return nil
	}
	defer f.Close()
	sockets, names := list(f)
	var stacks []Stack
	named := map[string]bool{}
	for _, name := range names {
		target, err := os.Readlink(f.At(name))
		if err != nil || !socketName.MatchString(target) {
			continue
		}
		named[target] = true
		stacks = append(stacks, Stack{strings.TrimSuffix(name, nameSuffix), true, f.Owner(), f.Path(), target})
	}
	for _, socket := range sockets {
		if !named[socket] {
			stacks = append(stacks, Stack{strings.TrimSuffix(socket, socketSuffix), false, f.Owner(), f.Path(), socket})
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
	var ids []string
	for _, s := range Stacks() {
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
func (s Stack) Number() string { return strings.TrimSuffix(s.socket, socketSuffix) }

// Foreign reports whether the stack is another user's. Nothing of such a stack may be used by
// this process: its holder would hand out code that this process runs, with this user's rights.
func (s Stack) Foreign() bool { return s.Owner != os.Geteuid() }

// FindOwn is FindStack for a command that takes anything from the stack except what its holder
// says. Of another user's it is refused. To root the error says how to do it as that user: command
// is what follows the word guise.
func FindOwn(id string, command ...string) (Stack, error) {
	s, err := FindStack(id)
	if err != nil || !s.Foreign() {
		return s, err
	}
	if os.Geteuid() != 0 {
		return s, RefusedError{fmt.Sprintf("the stack %s belongs to user %d, and only that user may use it", s.ID, s.Owner)}
	}
	return s, RefusedError{fmt.Sprintf("the stack %s belongs to user %d, and root uses no stack of another user, which could make root "+
		"do what its owner wants; as that user: %s %s", s.ID, s.Owner, become(s.Owner),
		plain.Words(append([]string{"env", "GUISE_RUNDIR=" + s.folder, "guise"}, command...)...))}
}

// become is what root types to be that user.
func become(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "runuser -u " + plain.Words(u.Username) + " --"
	}
	return fmt.Sprintf("setpriv --reuid=%d --regid=%[1]d --clear-groups", uid)
}
