// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/plan"
)

// lastWords is how long guise waits for a holder to end and undo everything,
// once no program needs the stack any more.
const lastWords = 5 * time.Second

// raise has a holder build the stack of the plan, and returns once it is
// built. When it cannot be, the holder has ended.
func raise(p *plan.Plan, links []*os.File, who holder.Who, stop <-chan os.Signal) (*holder.Holder, error) {
	h, err := holder.Start(p.Text(), links, who)
	if err != nil {
		return nil, err
	}
	if err := h.Wait(stop); err != nil {
		lower(h)
		return nil, explainBuild(p, err)
	}
	return h, nil
}

// lower gives the stack up, and waits until its holder has ended.
func lower(h *holder.Holder) (*holder.Summary, error) {
	h.Ticket.Close()
	return h.Summary(lastWords, nil)
}

// explainBuild names what the user wrote instead of the plan's line, which the
// user never saw.
func explainBuild(p *plan.Plan, err error) error {
	var signal holder.Interrupted
	if errors.As(err, &signal) {
		return interrupted(signal.Signal)
	}
	var build *holder.BuildError
	if !errors.As(err, &build) {
		return err
	}
	line, ok := p.Line(build.Line)
	if !ok {
		return fmt.Errorf("the stack could not be built: %w", err)
	}
	if line.Origin == "" {
		return fmt.Errorf("the stack could not be built: %w (plan: %s)", err, line.Text)
	}
	return usage("%s: %w", line.Origin, err)
}

func interrupted(s os.Signal) error {
	if number, ok := s.(unix.Signal); ok {
		return failure{status: 128 + int(number)}
	}
	return failure{status: statusFailed}
}
