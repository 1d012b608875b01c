// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"guise/internal/holder"
)

func newDetach() *cobra.Command {
	return &cobra.Command{
		Use:   "detach PID",
		Short: "Let a debugger at a program that is on a stack",
		Long: "The holder of a stack traces the programs on it, so that one that is killed in the middle of a change to the stack\n" +
			"does not lose it for the others. A process has one tracer: this lets go of process PID, and a debugger may attach to it.\n" +
			"What that costs: if PID is then killed in the middle of a change, the stack is lost; if it is stopped, the stack waits.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("expected guise detach PID")
			}
			if pid, err := strconv.Atoi(args[0]); err != nil || pid <= 0 {
				return usage("%q is no process; expected guise detach PID", args[0])
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			pid, _ := strconv.Atoi(args[0])
			if err := detach(pid); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "guise: process %d can be traced by a debugger now; until it executes another program, the stack is "+
				"lost for all that are on it if this process is killed in the middle of a change\n", pid)
			return nil
		}),
	}
}

// detach finds the stack that the process is on.
func detach(pid int) error {
	for _, s := range holder.Stacks() {
		status, err := statusOf(s, 0)
		if err != nil || !slices.Contains(status.PIDs, pid) {
			continue
		}
		c, err := s.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Detach(pid)
	}
	return usage("process %d is on none of your stacks (guise ls --json lists those that are)", pid)
}
