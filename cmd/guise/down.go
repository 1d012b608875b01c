// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet"
)

// deliveryTime is how long a holder may go on delivering what programs sent, once they
// have left, and undoing what was changed on the host. It has shorter deadlines of its own
// for each (holder/drain.h, holder/deadline.h).
const deliveryTime = 100 * time.Second

// silentTime is how long a holder may be silent that is asked to end and has not answered: it
// is stopped, or hangs.
const silentTime = 10 * time.Second

func newDown() *cobra.Command {
	var drain time.Duration
	cmd := &cobra.Command{
		Use:   "down STACK [--drain TIME]",
		Short: "End a stack",
		Long: "Ends a stack, and returns when everything is undone. From then on no further program gets on it. Those that\n" +
			"are on it may go on for the time of --drain; the stack ends as soon as the last has left. Programs that are\n" +
			"still on it then get ENETDOWN (\"Network is down\") from every call. What programs that have left had sent\n" +
			"is delivered first. A holder that does not answer (it may be stopped), or does not come to its end, is killed.",
		Example: "  guise down web\n  guise down web --drain 30s",
		Args: func(_ *cobra.Command, args []string) error {
			return checkEnding("guise down STACK", args, drain)
		},
		ValidArgsFunction: completeStacks,
		RunE: action(func(_ *cobra.Command, args []string) error {
			return down(args[0], drain)
		}),
	}
	cmd.Flags().DurationVar(&drain, "drain", 0, "let programs that are on the stack go on for `TIME`, as in 30s")
	return cmd
}

// checkEnding is of a command that ends a stack: form is how it is called.
func checkEnding(form string, args []string, drain time.Duration) error {
	if len(args) != 1 {
		return usage("expected %s; guise ls lists the stacks", form)
	}
	if drain < 0 || drain > 24*time.Hour {
		return usage("--drain: %v is no time to wait; expected one from 0s to 24h", drain)
	}
	return nil
}

func down(id string, drain time.Duration) error {
	stack, err := holder.FindStack(id)
	if err != nil {
		return err
	}
	c, err := stack.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	members, err := c.Down(drain)
	if errors.Is(err, holder.ErrTime) {
		complain(fmt.Errorf("%w; waiting for at most %v, then it is killed", err, drain+silentTime))
		return awaitEnd(c, id, drain+silentTime, stop, id+" is asked to end")
	}
	if err != nil {
		return err
	}
	if members > 0 && drain > 0 {
		complain(fmt.Errorf("%s still on %s; waiting for at most %v", programsAre(members), id, drain))
	}
	return awaitEnd(c, id, drain+deliveryTime, stop, id+" goes on ending by itself")
}

// awaitEnd waits until a stack that is to end has ended; after that time its holder is killed. If
// the user interrupts the wait, it says then.
func awaitEnd(c *holder.Client, id string, patience time.Duration, stop <-chan os.Signal, then string) error {
	err := c.WaitForEnd(patience, stop)
	if errors.Is(err, holder.ErrTime) {
		if err = c.Kill(stop); err == nil {
			complain(fmt.Errorf("the holder of %s did not end within %v; it was killed", id, patience))
			err = hostnet.Sweep() // what it would have undone
		}
	}
	var caught holder.Interrupted
	switch {
	case errors.As(err, &caught):
		complain(errors.New(then))
		return interrupted(caught.Signal)
	case err != nil:
		return fmt.Errorf("%s has not ended: %w", id, err)
	}
	holder.SweepSockets()
	return nil
}

func programsAre(n int) string {
	if n == 1 {
		return "1 program is"
	}
	return fmt.Sprintf("%d programs are", n)
}
