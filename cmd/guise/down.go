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
)

// deliveryTime is how long a holder may go on delivering what programs sent, once they
// have left (holder/drain.h), and undoing what was changed on the host.
const deliveryTime = 75 * time.Second

func newDown() *cobra.Command {
	var drain time.Duration
	cmd := &cobra.Command{
		Use:   "down STACK [--drain TIME]",
		Short: "End a stack",
		Long: "Ends a stack, and returns when everything is undone. From then on no further program gets on it. Those that\n" +
			"are on it may go on for the time of --drain; the stack ends as soon as the last has left. Programs that are\n" +
			"still on it then get ENETDOWN (\"Network is down\") from every call. What programs that have left had sent\n" +
			"is delivered first.",
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
	if err != nil {
		return err
	}
	if members > 0 && drain > 0 {
		complain(fmt.Errorf("%s still on %s; waiting for at most %v", programsAre(members), id, drain))
	}
	return awaitEnd(c, id, drain, stop, id+" goes on ending by itself")
}

// awaitEnd waits until a stack that is to end has ended. If the user interrupts the wait, it
// says then.
func awaitEnd(c *holder.Client, id string, drain time.Duration, stop <-chan os.Signal, then string) error {
	err := c.WaitForEnd(drain+deliveryTime, stop)
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
