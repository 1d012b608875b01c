// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// The numbers of the holder's first descriptors; those of the links follow.
const (
	planFD = 3 + iota
	ticketFD
	statusFD
	FirstLinkFD
)

// libguise's own descriptors are the last ownRoom numbers below ownTop. Below a limit that is lower
// they are the last half as many, or the last half of all (lib/host/fd.c).
const (
	ownTop  = 4096
	ownRoom = 256
)

// Spawn is the first argument of guise when it has only to start a holder.
//
// guise run executes the program in its own process. If the holder were a child of that
// process, the program would have a child that it did not make. So guise run starts another
// guise, which starts the holder and ends.
const Spawn = "spawn-holder"

// Holder is a running holder.
type Holder struct {
	// Ticket is the descriptor that the program inherits: the right to join; or, where the program
	// is a guest, a pipe that only says that it is there. The stack lasts while it has members or
	// copies of it.
	Ticket *os.File
	// PID is the holder's, which is no child of this process.
	PID int

	reports <-chan report
}

// Who the program is that a stack is started for.
type Who string

// The words are options of guise-holder.
const (
	Member Who = "--ticket"
	Guest  Who = "--alive"
)

// descriptors are the program's and the holder's.
func (w Who) descriptors() (ours, its *os.File, err error) {
	if w == Guest {
		return os.Pipe()
	}
	return socketpair(unix.SOCK_SEQPACKET, "ticket")
}

// Start starts a holder, which builds the stack of that plan on the descriptors of
// the links. Wait returns the result.
func Start(plan string, links []*os.File, who Who) (h *Holder, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the path of this program: %w", err)
	}
	program, err := Find(Program)
	if err != nil {
		return nil, err
	}
	planFile, err := MemoryFile("guise-plan", plan)
	if err != nil {
		return nil, err
	}
	defer planFile.Close()
	ours, its, err := who.descriptors()
	if err != nil {
		return nil, err
	}
	defer its.Close()
	hear, say, err := socketpair(unix.SOCK_STREAM, "status")
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer say.Close()
	h = &Holder{Ticket: ours, reports: listen(hear)}
	defer func() {
		if err != nil {
			ours.Close()
			h, err = nil, fmt.Errorf("cannot start %s: %w", program, err)
		}
	}()

	files := append([]*os.File{planFile, its, say}, links...)
	cmd := exec.Command(self, Spawn, program, strconv.Itoa(len(files)), string(who))
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	// A session of its own, so that Ctrl-C in the terminal goes to the program alone.
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	pid, err := cmd.Output()
	if err == nil {
		h.PID, err = strconv.Atoi(string(pid))
	}
	return h, err
}

// note is a part of the holder's command line, where users find it: when a debugger is refused,
// it names the tracer that the program has (TracerPid of /proc/PID/status), and ps -eLf shows
// the command line of that one.
const note = "traces the programs of its stack; guise detach PID lets a debugger at one"

// RunSpawn runs in the process between guise and the holder. args are the path of
// the holder, how many descriptors it gets, from number 3 on, and what the second of them is. It
// writes the holder's pid.
func RunSpawn(args []string) error {
	if len(args) != 3 {
		return errors.New("this command is guise's own")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	files := []*os.File{null, null, os.Stderr}
	for fd := planFD; fd < planFD+count; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	process, err := os.StartProcess(args[0], []string{args[0],
		"--plan", strconv.Itoa(planFD), args[2], strconv.Itoa(ticketFD), "--status", strconv.Itoa(statusFD), "--note", note},
		&os.ProcAttr{Dir: "/", Env: holderEnvironment(os.Environ()), Files: files})
	if err == nil {
		fmt.Print(process.Pid)
	}
	return err
}

// MoveTicket moves the ticket to a number that no program uses for a descriptor of its
// own, near the highest that may be open, and makes it inheritable. It returns that
// number.
//
// The number is below those of libguise, and above the soft limit of most programs.
func (h *Holder) MoveTicket() (fd int, err error) {
	h.Ticket, fd, err = MoveTicket(h.Ticket)
	return fd, err
}

// MoveTicket does the same for any ticket.
func MoveTicket(ticket *os.File) (*os.File, int, error) {
	top := ownTop
	var limit unix.Rlimit
	// Go's runtime has raised the soft limit of this process; the program gets its old one back.
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < uint64(top) {
		top = int(limit.Cur)
	}
	room := ownRoom
	if top < ownTop {
		room = min(ownRoom, top) / 2
	}
	for fd := top - room - 1; fd > 2; fd-- {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
			continue
		}
		if err := unix.Dup3(int(ticket.Fd()), fd, 0); err != nil {
			return ticket, -1, fmt.Errorf("cannot move the ticket to descriptor %d: %w", fd, err)
		}
		ticket.Close()
		return os.NewFile(uintptr(fd), "ticket"), fd, nil
	}
	return ticket, -1, errors.New("all descriptors are taken; raise the limit (ulimit -n)")
}

// MemoryFile makes a file in memory (memfd_create).
func MemoryFile(name, text string) (*os.File, error) {
	// Hosts from Linux 6.3 on may refuse memory files that can be executed. The flag says
	// that this one cannot; older hosts do not know the flag.
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err != nil {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err = file.WriteString(text); err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot write %s: %w", name, err)
	}
	return file, nil
}

func socketpair(kind int, name string) (ours, its *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}
