// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"github.com/spf13/cobra"

	"guise/internal/hostnet"
)

// newUndo is the command that a holder runs last (the plan's undo line), and that the
// holder names to the user when it failed.
func newUndo() *cobra.Command {
	return &cobra.Command{
		Use:    "undo JOURNAL",
		Short:  "Undo what a journal says was changed on the host",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		// No sweep: it would do the same, and the holder that waits is alive.
		PersistentPreRun: func(*cobra.Command, []string) {},
		RunE: action(func(_ *cobra.Command, args []string) error {
			return hostnet.Undo(args[0])
		}),
	}
}
