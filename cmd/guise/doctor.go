// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"guise/internal/doctor"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine allows, and what a run would get",
		Long: "Looks at what guise needs of this machine, for the user who calls it, and says what guise run without flags\n" +
			"would get. Each finding is ok, a note (not all of it works) or bad (such a run fails), with a next step.\n\n" +
			"The exit status is 0 if guise run without flags works, and 1 if not.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unexpected %q; expected guise doctor [--json]", args[0])
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			report, err := doctor.Examine()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetEscapeHTML(false)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(report)
			} else {
				for _, f := range report.Findings {
					fmt.Fprintf(out, "%-4s %s: %s\n", f.Status, f.Name, f.Text)
					if f.Next != "" {
						fmt.Fprintf(out, "     -> %s\n", f.Next)
					}
				}
				_, err = fmt.Fprintf(out, "%s\n", report.Text)
			}
			if err == nil && !report.Works {
				return failure{status: 1}
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the report as one JSON object")
	return cmd
}
