// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plain"
	"guise/internal/plan"
)

// Client is a connection to the service, for one stack.
type Client struct {
	file *os.File
	seq  uint64
}

// RefusedError is the service's answer that it refuses a request.
type RefusedError struct{ text string }

func (e RefusedError) Error() string { return e.text }

const patience = 15 * time.Second // for an answer; the service may wait 10 s for the lock of the journals

// Dial connects to the service of this user; ErrNone if there is none.
func Dial() (*Client, error) {
	path := Socket(os.Geteuid())
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := From(os.NewFile(uintptr(fd), path))
	// Else connect waits for as long as the service's queue is full.
	limit := unix.NsecToTimeval(int64(patience))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		// Not any program's that could have put a socket there.
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && peer.Uid != 0 {
			err = fmt.Errorf("%s is of user %d, not root's", path, peer.Uid)
		}
	}
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist):
		err = ErrNone
	case errors.Is(err, unix.ECONNREFUSED):
		err = fmt.Errorf("the service that opens uplinks for this user does not run: nobody listens on %s", path)
	default:
		err = fmt.Errorf("cannot reach the service that opens uplinks for this user (%s): %w", path, err)
	}
	c.Close()
	return nil, err
}

// From takes a connection over. Answers that an earlier owner has not read are passed over.
func From(file *os.File) *Client {
	return &Client{file: file, seq: uint64(time.Now().UnixNano())}
}

// File is the connection.
func (c *Client) File() *os.File { return c.file }

// Close closes this process's copy of it.
func (c *Client) Close() error { return c.file.Close() }

// ask sends a request, and returns what stands behind "ok", with the descriptor that came along, or nil.
func (c *Client) ask(words ...string) (string, *os.File, error) {
	c.seq++
	fd := int(c.file.Fd()) // which makes it block
	limit := unix.NsecToTimeval(int64(patience))
	if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)); err != nil {
		return "", nil, os.NewSyscallError("setsockopt", err)
	}
	text := strings.TrimSpace(fmt.Sprintf("%d %s", c.seq, strings.Join(words, " ")))
	if err := unix.Sendto(fd, []byte(text), unix.MSG_NOSIGNAL, nil); err != nil {
		return "", nil, gone(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		answer, file, err := c.receive(fd)
		if err != nil {
			return "", nil, gone(err)
		}
		seq, rest, _ := strings.Cut(answer, " ")
		word, rest, _ := strings.Cut(rest, " ")
		switch {
		case seq != fmt.Sprint(c.seq):
		case word == "ok":
			return rest, file, nil
		case word == "no":
			return "", nil, RefusedError{plain.Text(rest)}
		}
		if file != nil {
			file.Close()
		}
	}
	return "", nil, gone(unix.EAGAIN)
}

func gone(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("the service that opens uplinks has not answered within %v", patience)
	}
	return fmt.Errorf("the service that opens uplinks has ended: %w", err)
}

func (c *Client) receive(fd int) (string, *os.File, error) {
	text, control := make([]byte, mostMessage), make([]byte, unix.CmsgSpace(4))
	for {
		n, controls, _, _, err := unix.Recvmsg(fd, text, control, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = unix.EPIPE
		}
		if err != nil {
			return "", nil, err
		}
		messages, err := unix.ParseSocketControlMessage(control[:controls])
		if err != nil || len(messages) == 0 {
			return string(text[:n]), nil, nil
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return string(text[:n]), nil, err
		}
		return string(text[:n]), os.NewFile(uintptr(fds[0]), "uplink"), nil
	}
}

// Ports reserves ports of the host for the stack; want "": any. It returns them.
func (c *Client) Ports(want string) (string, error) {
	words := []string{verbPorts}
	if want != "" {
		words = append(words, want)
	}
	ports, _, err := c.ask(words...)
	return ports, err
}

// Opened is a device through which a stack shares an interface.
type Opened struct {
	File *os.File
	Kind string // of the plan
	MAC  string // of the stack's interface, if it has one
}

// Open opens one.
func (c *Client) Open(name string) (*Opened, error) {
	answer, file, err := c.ask(verbOpen, name)
	if err != nil {
		return nil, err
	}
	kind, mac, _ := strings.Cut(answer, " ")
	if file == nil || kind != plan.Tap && kind != plan.Tun {
		return nil, fmt.Errorf("the service that opens uplinks answered %q", plain.Text(answer))
	}
	return &Opened{file, kind, mac}, nil
}

// SetAddresses says which addresses the stack has there.
func (c *Client) SetAddresses(name string, all []netip.Addr) error {
	words := []string{verbAddresses, name}
	for _, a := range all {
		words = append(words, a.String())
	}
	_, _, err := c.ask(words...)
	return err
}

// CloseUplink closes what was opened.
func (c *Client) CloseUplink(name string) error {
	_, _, err := c.ask(verbClose, name)
	return err
}

// Ended is closed when the service ends.
func (c *Client) Ended() <-chan struct{} {
	ended := make(chan struct{})
	fd, err := unix.FcntlInt(c.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return ended
	}
	go func() {
		defer unix.Close(fd)
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		for {
			if _, err := unix.Poll(p, -1); !errors.Is(err, unix.EINTR) {
				close(ended)
				return
			}
		}
	}()
	return ended
}
