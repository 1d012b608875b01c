// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/plain"
)

// changeTime is how long a stack may take for a change. It takes less than a millisecond, unless the
// stack is busy or its processes are stopped.
const changeTime = 60 * time.Second

// ErrEnded is returned when the stack is gone.
var ErrEnded = errors.New("the stack has ended")

// Change has the stack do a line of the plan, or undo it ("no LINE"), while it runs. In the line fd=N is
// file N. A RefusedError is the stack's own reason.
func (c *Client) Change(line string, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(c.fd, []byte("change "+line), rights, nil, unix.MSG_NOSIGNAL); err != nil {
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			return ErrEnded
		}
		return fmt.Errorf("cannot ask the holder of %s for %q: %w", c.id, line, err)
	}
	text, fd, err := c.hear(changeTime)
	if err != nil {
		return err
	}
	drop(fd)
	if text == "" {
		return ErrEnded
	}
	if reason, refused := strings.CutPrefix(text, "error "); refused {
		return RefusedError{plain.Text(reason)}
	}
	return nil
}

// Ended returns a channel that is closed when the holder has hung up.
func (c *Client) Ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			poll := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLRDHUP}}
			if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
			if poll[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				return
			}
		}
	}()
	return ended
}

// Refusal returns the error of a stack that refuses with that sentence.
func Refusal(sentence string) error { return RefusedError{sentence} }
