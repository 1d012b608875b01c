// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The process apart reads what the network sends in the place of one that has rights:
//
//	who has rights                          guise get-addresses: no rights (confine.go)
//	FollowApart ── what is wanted, "release" ──► RunApart ◄──► packet socket: DHCP, announcements
//	            ◄────────── records ────────────          ◄─── netlink: the device's carrier
//
// The two sockets are of one device, which is the stack's, and the packet socket's filter is locked. So
// whoever takes the process over sends and gets on that link what any machine there could, says what it
// likes of that link's addresses within the limits of a record, and no more.
//
// It ends with the one who started it: the channel ends then, and the kernel kills it (it cannot
// prevent that). If it ends otherwise, or says what is no record, it is killed and started again after a
// pause, which grows while it does not live for a minute. What it said last holds meanwhile; when it has
// ended several times in a row, it does no longer.

// Command is the first argument of guise when it is this process.
const Command = "get-addresses"

const (
	wordRelease  = "release"
	releaseTime  = time.Second // to give addresses back
	mostPause    = time.Minute
	mostFailures = 5 // in a row: then what was said is old
)

// Descriptors of the process.
const (
	channelFD = 3 + iota
	packetsFD
	linksFD
)

// FollowApart is Follow in a process without rights. It ends when the context ends, or its caller.
func (p *Port) FollowApart(ctx context.Context, w Want) <-chan State {
	return p.followApart(ctx, w, 1, Command)
}

// followApart makes pauses that are so many times shorter, for tests.
func (p *Port) followApart(ctx context.Context, w Want, speed time.Duration, command ...string) <-chan State {
	out := make(chan State, 1)
	var last *State
	tell := func(s State) {
		if last == nil || !s.equal(*last) {
			last = &s
			replace(out, s)
		}
	}
	go func() {
		defer close(out)
		defer p.Close()
		for failures := 0; ; {
			began := time.Now()
			err := p.apart(ctx, w, tell, command)
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) >= mostPause {
				failures = 0
			}
			if failures++; failures >= mostFailures {
				tell(State{Trouble: []string{fmt.Sprintf("what asks for addresses on %s ended: %v; it is started again", w.Name, err)}})
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(mostPause, firstWait<<min(failures-1, 10)) / speed):
			}
		}
	}()
	return out
}

// apart runs one such process to its end.
func (p *Port) apart(ctx context.Context, w Want, tell func(State), command []string) error {
	want, err := json.Marshal(w)
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "channel"), os.NewFile(uintptr(pair[1]), "channel")
	defer ours.Close()
	c := exec.Command("/proc/self/exe", command...)
	c.Args[0], c.Dir = "guise", "/"
	c.Env = []string{"TZ=" + os.Getenv("TZ")}
	if os.Getenv("TZ") == "" {
		c.Env = []string{}
	}
	c.ExtraFiles = []*os.File{theirs, p.packets, p.links}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The signal comes when the thread ends that has started the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	err = <-started
	theirs.Close()
	if err != nil {
		return err
	}
	ours.Write(want)
	stop := context.AfterFunc(ctx, func() {
		ours.Write([]byte(wordRelease))
		ours.SetReadDeadline(time.Now().Add(releaseTime))
	})
	defer stop()
	err = listen(ours, tell)
	c.Process.Kill()
	if how := <-ended; err == nil {
		err = how
	}
	return err
}

// listen passes on what the process says, until it has hung up or makes no sense.
func listen(channel *os.File, tell func(State)) error {
	record := make([]byte, mostRecord+1)
	for {
		n, err := channel.Read(record)
		if err != nil {
			return nil
		}
		s, err := decode(record[:n])
		if err != nil {
			return err
		}
		tell(s)
		time.Sleep(pace) // one that sends more often waits
	}
}

// RunApart is the whole process.
func RunApart(args []string) error {
	if len(args) != 0 {
		return errors.New("this command is guise's own")
	}
	runtime.GOMAXPROCS(1)
	name := [16]byte{}
	copy(name[:], "guise-addresses")
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0) // of the first thread, for ps
	var files [3]*os.File
	for i := range files {
		fd := channelFD + i
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return errors.New("this command is guise's own")
		}
		files[i] = os.NewFile(uintptr(fd), "inherited")
	}
	channel := files[0]
	var w Want
	message := make([]byte, mostRecord)
	n, err := channel.Read(message)
	if err != nil || json.Unmarshal(message[:n], &w) != nil {
		return errors.New("this command is guise's own")
	}
	port, err := Inherit([2]*os.File(files[packetsFD-channelFD:]))
	if err != nil {
		return err
	}
	clock(time.Now()) // the time zone is read from a file
	if err := confine(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		word := make([]byte, len(wordRelease)+1)
		if n, err := channel.Read(word); err == nil && string(word[:n]) == wordRelease {
			cancel()
			return
		}
		os.Exit(0) // nobody is there: another one asks with the same identity, so nothing is given back
	}()
	var last []byte
	for s := range port.Follow(ctx, w) {
		b, err := encode(fit(s))
		if err != nil {
			return err
		}
		if slices.Equal(b, last) {
			continue // only times are others
		}
		last = b
		if _, err := channel.Write(b); err != nil {
			return err
		}
	}
	return nil
}
