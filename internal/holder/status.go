// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report is a line that the holder wrote, with the pid of the writer, which the host's
// kernel adds: the holder is not a child of guise, so guise learns its pid from this. The
// last report has an error; io.EOF means that nothing failed.
type report struct {
	line string
	pid  int
	err  error
}

// BuildError is the holder's report that a line of the plan has failed.
type BuildError struct {
	Line   int // 0: no single line
	Reason string
}

func (e *BuildError) Error() string { return e.Reason }

// ErrTime is returned when the holder has not reported in time.
var ErrTime = errors.New("no report from the holder")

// Interrupted is returned when a signal came before the holder's report.
type Interrupted struct{ Signal os.Signal }

func (i Interrupted) Error() string { return i.Signal.String() }

// listen reads the holder's reports until it has ended.
func listen(status *os.File) <-chan report {
	fd := int(status.Fd())
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	// Room for all reports, so that this never waits for a receiver: there are at
	// most two lines, and the end.
	reports := make(chan report, 16)
	go func() {
		defer close(reports)
		defer status.Close()
		var text []byte
		for {
			buffer, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
			n, controlLength, _, _, err := unix.Recvmsg(fd, buffer, control, 0)
			if err == unix.EINTR {
				continue
			}
			if err == nil && n == 0 {
				err = io.EOF
			}
			if err != nil {
				reports <- report{err: err}
				return
			}
			pid := writer(control[:controlLength])
			text = append(text, buffer[:n]...)
			for {
				line, rest, whole := bytes.Cut(text, []byte{'\n'})
				if !whole {
					break
				}
				text = rest
				reports <- report{line: string(line), pid: pid}
			}
		}
	}()
	return reports
}

func writer(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if credentials, err := unix.ParseUnixCredentials(&m); err == nil {
			return int(credentials.Pid)
		}
	}
	return 0
}

// next returns the next report, unless a signal comes or the time is over before.
func (h *Holder) next(patience <-chan time.Time, stop <-chan os.Signal) report {
	select {
	case r, open := <-h.reports:
		if !open {
			return report{err: io.EOF}
		}
		return r
	case <-patience:
		return report{err: ErrTime}
	case signal := <-stop:
		return report{err: Interrupted{signal}}
	}
}

// readyTime is how long the building of a stack may take. It takes some 30 ms, and
// seconds on a machine that swaps.
const readyTime = 60 * time.Second

// Wait waits until the stack is built, and returns the holder's pid, or a *BuildError
// with the reason of a failure. A signal on stop ends the wait.
func (h *Holder) Wait(stop <-chan os.Signal) (pid int, err error) {
	r := h.next(time.After(readyTime), stop)
	switch {
	case errors.Is(r.err, io.EOF):
		return 0, fmt.Errorf("%s ended before the stack was ready, without a reason", Program)
	case errors.Is(r.err, ErrTime):
		return 0, fmt.Errorf("%s did not have the stack ready within %v", Program, readyTime)
	case r.err != nil:
		return 0, r.err
	case r.line == "ready":
		return r.pid, nil
	}
	word, rest, _ := strings.Cut(r.line, " ")
	if word != "error" {
		return 0, fmt.Errorf("%s reported %q, which this guise does not know; are both of one version?", Program, r.line)
	}
	number, reason, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, &BuildError{Reason: rest}
	}
	return 0, &BuildError{Line: n, Reason: strings.TrimSpace(reason)}
}

// Summary waits until the stack has ended, and returns its summary, or ErrTime if
// members are left after that time. A signal on stop ends the wait.
func (h *Holder) Summary(patience time.Duration, stop <-chan os.Signal) (*Summary, error) {
	end := time.After(patience)
	var summary *Summary
	for {
		r := h.next(end, stop)
		switch {
		case errors.Is(r.err, io.EOF) && summary != nil:
			return summary, nil
		case errors.Is(r.err, io.EOF):
			return nil, fmt.Errorf("%s ended without a summary: it was killed, or the stack was lost", Program)
		case r.err != nil:
			return nil, r.err
		}
		if text, ok := strings.CutPrefix(r.line, "summary "); ok {
			summary = &Summary{}
			if err := json.Unmarshal([]byte(text), summary); err != nil {
				return nil, fmt.Errorf("%s wrote a summary that cannot be read: %w", Program, err)
			}
		}
	}
}
