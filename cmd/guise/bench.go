// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"guise/internal/holder"
)

const benchProgram = "guise-bench"

// newBench executes guise-bench, which is written in C: what it measures are calls as a
// preloaded program makes them.
func newBench() *cobra.Command {
	return &cobra.Command{
		Use:   "bench [NAME...] [--json]",
		Short: "Measure this stack against this host's, side by side",
		Long: "Measures this stack against this host's, side by side, and prints the ratio of the two.\n" +
			"guise bench --list names the benchmarks; without a NAME all of them run.",
		DisableFlagParsing: true,
		RunE: action(func(_ *cobra.Command, args []string) error {
			program, err := holder.Find(benchProgram)
			if err != nil {
				return err
			}
			err = syscall.Exec(program, append([]string{program}, args...), os.Environ())
			return fmt.Errorf("cannot execute %s: %w", program, err)
		}),
	}
}
