// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"guise/internal/doctor"
	"guise/internal/plain"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [flags] [CMD [ARG...]]",
		Short: "Say what this machine allows, and what a run, or a program, would get",
		Long: "Looks at what guise needs of this machine, for the user who calls it, and says what guise run without flags\n" +
			"would get. Each finding is ok, a note (not all of it works) or bad (such a run fails), with a next step.\n\n" +
			"With CMD, says which way that program would take to its stack (preload, tun, refused), and what of it could\n" +
			"escape. It is not started, and its arguments may be there or not: a command line can be asked about as it is.\n\n" +
			"The exit status is 0 if guise run without flags works, or the program would run, and 1 if not.",
		Example: "  guise doctor\n  guise doctor curl https://example.org/",
		RunE: action(func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) > 0 {
				program, err := findProgram(args[0])
				if err != nil {
					return err
				}
				p := doctor.ExamineProgram(program, loadedFor(program), whyNotPreloaded(program), rawCallsAreSeen())
				return tell(out, asJSON, p, p.Findings, p.Text, p.Way != doctor.WayRefused)
			}
			report, err := doctor.Examine()
			if err != nil {
				return err
			}
			return tell(out, asJSON, report, report.Findings, report.Text, report.Works)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the report as one JSON object")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// tell writes a report; one of what does not work is status 1.
func tell(out io.Writer, asJSON bool, report any, findings []doctor.Finding, text string, works bool) (err error) {
	if asJSON {
		err = writeJSON(out, report)
	} else {
		for _, f := range findings {
			fmt.Fprintf(out, "%-4s %s: %s\n", f.Status, f.Name, plain.Lines(f.Text))
			if f.Next != "" {
				fmt.Fprintf(out, "     -> %s\n", f.Next)
			}
		}
		_, err = fmt.Fprintf(out, "%s\n", plain.Lines(text))
	}
	if err == nil && !works {
		return failure{status: 1}
	}
	return err
}
