// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plain"
	"guise/internal/rundir"
)

// answerTime is how long a holder may take to answer. It answers at once, unless it is
// stopped, or its stack is still being built.
const answerTime = 5 * time.Second

// Status is a holder's answer about its stack (docs/plan.md).
type Status struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Holder      int    `json:"holder"`
	AgeMS       uint64 `json:"age_ms"`
	Ending      bool   `json:"ending"`
	Lost        bool   `json:"lost"`
	Members     int    `json:"members"`
	Served      int    `json:"served"` // of the members: the others call the stack directly
	Joined      uint64 `json:"joined"`
	PIDs        []int  `json:"pids"`
	Memory      uint64 `json:"memory"`
	MemoryLimit uint64 `json:"memory_limit"`
	Escaped     uint64 `json:"escaped"`
	Programs
	Links []LinkStatus      `json:"links"`
	Told  map[string]string `json:"told"`

	// Sockets is nil when the stack's kernel did not answer in time.
	Sockets *int `json:"sockets"`
}

// LinkStatus is one link of a stack.
type LinkStatus struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Lost        bool   `json:"lost"`
	TxBytes     uint64 `json:"tx_bytes"`
	RxBytes     uint64 `json:"rx_bytes"`
	TxFrames    uint64 `json:"tx_frames"`
	RxFrames    uint64 `json:"rx_frames"`
	TxDropped   uint64 `json:"tx_dropped"`
	RxMalformed uint64 `json:"rx_malformed"`
}

// Escape turns any text into one word of a plan, for its tell lines.
func Escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Unescape returns the text that Escape was given.
func Unescape(word string) string {
	if text, err := url.PathUnescape(word); err == nil {
		return text
	}
	return word
}

// RefusedError is a holder's answer that it refuses the request.
type RefusedError struct{ text string }

func (e RefusedError) Error() string { return e.text }

// Client is a connection to a holder.
type Client struct {
	id   string
	fd   int
	peer int // the pid of the process that listens

	foreign bool // the holder is another user's: only what it says is taken, as text
}

// connectPatience is how long to try when the holder's queue of connections is full.
const connectPatience = 2 * time.Second

// Dial connects to the holder that answers at that path, in a folder of this user's.
func Dial(path string) (*Client, error) {
	socket := filepath.Base(path)
	return Stack{ID: socket, Owner: os.Geteuid(), folder: filepath.Dir(path), socket: socket}.Dial()
}

// Dial connects to the holder of a stack.
func (s Stack) Dial() (*Client, error) { return s.dial(connectPatience) }

func (s Stack) dial(patience time.Duration) (*Client, error) {
	ended := NoStackError{fmt.Sprintf("the stack %s has just ended, or its holder was killed", s.ID)}
	f, err := rundir.Open(s.folder)
	if errors.Is(err, rundir.ErrNone) {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := connect(f.At(s.socket), patience)
	switch {
	case err == nil:
	case errors.Is(err, unix.EAGAIN):
		return nil, fmt.Errorf("the holder of %s does not answer: %w", s.ID, ErrTime)
	case errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT):
		return nil, ended
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return nil, RefusedError{fmt.Sprintf("the stack %s belongs to another user, and only that user and root may use it", s.ID)}
	default:
		return nil, fmt.Errorf("cannot connect to the holder of %s at %s/%s: %w", s.ID, s.folder, s.socket, err)
	}
	c := &Client{id: s.ID, fd: fd, foreign: s.Foreign()}
	// A link may lead anywhere, and other users may have been able to write in the folder once.
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || f.Owner() != s.Owner || int(peer.Uid) != s.Owner {
		c.Close()
		return nil, RefusedError{fmt.Sprintf("%s/%s is no stack: its folder is of user %d, and another user listens there; "+
			"remove it, or name another folder in $GUISE_RUNDIR", s.folder, s.socket, f.Owner())}
	}
	c.peer = int(peer.Pid)
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() { unix.Close(c.fd) }

// hear returns the next packet. When the connection has ended it returns an empty text and no
// error, also if the holder ended before it read the request. fd is -1 when no descriptor came.
func (c *Client) hear(patience time.Duration) (text string, fd int, err error) {
	const negative = -1
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return "", negative, err
	}
	buffer, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*4))
	var n, controlLength int
	for {
		n, controlLength, _, _, err = unix.Recvmsg(c.fd, buffer, control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	switch err {
	case nil:
	case unix.ECONNRESET:
		return "", negative, nil
	case unix.EAGAIN:
		return "", negative, fmt.Errorf("the holder of %s does not answer: %w", c.id, ErrTime)
	default:
		return "", negative, fmt.Errorf("the holder of %s does not answer: %w", c.id, err)
	}
	fd = negative
	messages, _ := unix.ParseSocketControlMessage(control[:controlLength])
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		for _, got := range fds {
			if fd != negative {
				unix.Close(fd)
			}
			fd = got
		}
	}
	return string(buffer[:n]), fd, nil
}

// ask sends one request and returns the answer.
func (c *Client) ask(request string) (text string, fd int, err error) {
	err = unix.Send(c.fd, []byte(request), unix.MSG_NOSIGNAL)
	if err != nil && err != unix.EPIPE && err != unix.ECONNRESET { // these two: hear() finds the end
		return "", -1, fmt.Errorf("cannot ask the holder of %s: %w", c.id, err)
	}
	text, fd, err = c.hear(answerTime)
	if err != nil {
		return "", -1, err
	}
	if reason, refused := strings.CutPrefix(text, "error "); refused {
		return "", -1, RefusedError{plain.Text(reason)}
	}
	if text == "" {
		return "", -1, NoStackError{fmt.Sprintf("the stack %s has just ended", c.id)}
	}
	return text, fd, nil
}

// tell is ask, for an answer in which no descriptor is expected.
func (c *Client) tell(request string) (string, error) {
	text, fd, err := c.ask(request)
	drop(fd)
	return text, err
}

func drop(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}

// Status asks for the status of the stack. patience is how long the holder may wait for what
// only the stack's kernel knows.
func (c *Client) Status(patience time.Duration) (*Status, error) {
	text, err := c.tell("status")
	if err != nil {
		return nil, err
	}
	s := &Status{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("the holder of %s gave a status that cannot be read: %w", c.id, err)
	}
	for key, value := range s.Told {
		s.Told[key] = Unescape(value)
	}
	if patience > 0 {
		if text, fd, err := c.hear(patience); err != nil && !errors.Is(err, ErrTime) {
			return nil, err
		} else if text != "" {
			drop(fd)
			if err := json.Unmarshal([]byte(text), s); err != nil {
				return nil, err
			}
		}
	}
	s.makePlain()
	return s, nil
}

// makePlain has what a user may read of it contain nothing that a terminal would obey.
func (s *Status) makePlain() {
	s.Name, s.Version = plain.Text(s.Name), plain.Text(s.Version)
	for i := range s.Links {
		s.Links[i].Name, s.Links[i].Kind = plain.Text(s.Links[i].Name), plain.Text(s.Links[i].Kind)
	}
	for i := range s.Outside {
		s.Outside[i].Program, s.Outside[i].Why = plain.Text(s.Outside[i].Program), plain.Text(s.Outside[i].Why)
	}
}

// endingPatience is how long AnyEnding waits for an answer: a holder that is not stopped
// answers at once.
const endingPatience = time.Second

// AnyEnding reports whether a stack of this user is about to undo what was changed on the
// host for it: its last program has left, and what that program sent is being delivered.
//
// The holder learns of the end of a program before this process can, or at least before it
// reads this question.
func AnyEnding() bool {
	answers := make(chan bool)
	stacks := Stacks()
	for _, s := range stacks {
		go func() { answers <- s.ending() }()
	}
	any := false
	for range stacks {
		any = <-answers || any
	}
	return any
}

func (s Stack) ending() bool {
	c, err := s.dial(endingPatience)
	if err != nil {
		return false
	}
	defer c.Close()
	// The process that listens is still the command that made the socket: its stack has not
	// begun yet.
	if starter, _, _ := strings.Cut(s.Number(), "_"); starter == strconv.Itoa(c.peer) {
		return false
	}
	if unix.Send(c.fd, []byte("status"), unix.MSG_NOSIGNAL) != nil {
		return true
	}
	text, _, err := c.hear(endingPatience)
	if err != nil {
		return false
	}
	status := Status{}
	return text == "" || json.Unmarshal([]byte(text), &status) == nil && status.Ending && status.Members == 0
}

// descriptor asks for something that comes as a descriptor.
func (c *Client) descriptor(request, name string) (*os.File, error) {
	if c.foreign {
		return nil, RefusedError{fmt.Sprintf("the stack %s belongs to another user, and nothing of it is used", c.id)}
	}
	_, fd, err := c.ask(request)
	if err != nil {
		return nil, err
	}
	if fd < 0 {
		return nil, fmt.Errorf("the holder of %s sent no %s: this process has too many open files", c.id, name)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Ticket asks for the right to join the stack.
func (c *Client) Ticket() (*os.File, error) { return c.descriptor("ticket", "ticket") }

// Alive asks for what says that a guest is there: the stack stays while copies of it are open.
func (c *Client) Alive() (*os.File, error) { return c.descriptor("alive", "pipe") }

// Guests asks for the network namespace of the stack's guests.
func (c *Client) Guests() (*os.File, error) { return c.descriptor("guests", "namespace") }

// Keep has the stack stay when its last program leaves.
func (c *Client) Keep() error {
	_, err := c.tell("keep")
	return err
}

// Detach makes the holder stop tracing that member.
func (c *Client) Detach(pid int) error {
	_, err := c.tell("detach " + strconv.Itoa(pid))
	return err
}

// Down makes the stack end when no program is on it any more, or after that time. It
// returns how many programs are on it now.
func (c *Client) Down(drain time.Duration) (members int, err error) {
	text, err := c.tell("down " + strconv.FormatInt(drain.Milliseconds(), 10))
	if err != nil {
		return 0, err
	}
	number, _ := strings.CutPrefix(text, "ok ")
	if members, err = strconv.Atoi(number); err != nil {
		return 0, fmt.Errorf("the holder of %s answered %q, which is no number of programs", c.id, text)
	}
	return members, nil
}

// WaitForEnd waits until the holder has ended, and has undone everything; ErrTime if that takes
// longer. An answer that comes late is not the end.
func (c *Client) WaitForEnd(patience time.Duration, stop <-chan os.Signal) error {
	ended := make(chan error, 1)
	go func() {
		for {
			text, _, err := c.hear(patience)
			if err != nil || text == "" {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		return err
	case signal := <-stop:
		return Interrupted{signal}
	}
}

// Kill kills the holder, and waits until it is gone.
func (c *Client) Kill(stop <-chan os.Signal) error {
	program, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.peer))
	if name := strings.TrimSpace(string(program)); err != nil || name != Program {
		return fmt.Errorf("process %d, which listens for %s, is no holder (%s)", c.peer, c.id, name)
	}
	if err := unix.Kill(c.peer, unix.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill the holder of %s, process %d: %w", c.id, c.peer, err)
	}
	return c.WaitForEnd(answerTime, stop)
}
