// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// report is a line that the holder wrote. The last report has an error; io.EOF means that
// nothing failed.
type report struct {
	line string
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
	// Room for all reports, so that this never waits for a receiver: there are at
	// most two lines, and the end.
	reports := make(chan report, 16)
	go func() {
		defer close(reports)
		defer status.Close()
		in := bufio.NewReader(status)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				reports <- report{err: err}
				return
			}
			reports <- report{line: strings.TrimSuffix(line, "\n")}
		}
	}()
	return reports
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

// Wait waits until the stack is built, or returns a *BuildError with the reason of a failure.
// A signal on stop ends the wait.
func (h *Holder) Wait(stop <-chan os.Signal) error {
	r := h.next(time.After(readyTime), stop)
	switch {
	case errors.Is(r.err, io.EOF):
		return fmt.Errorf("%s ended before the stack was ready, without a reason", Program)
	case errors.Is(r.err, ErrTime):
		return fmt.Errorf("%s did not have the stack ready within %v", Program, readyTime)
	case r.err != nil:
		return r.err
	case r.line == "ready":
		return nil
	}
	word, rest, _ := strings.Cut(r.line, " ")
	if word != "error" {
		return fmt.Errorf("%s reported %q, which this guise does not know; are both of one version?", Program, r.line)
	}
	number, reason, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return &BuildError{Reason: rest}
	}
	return &BuildError{Line: n, Reason: strings.TrimSpace(reason)}
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
