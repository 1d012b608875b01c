// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"guise/internal/config"
)

func newProfiles() *cobra.Command {
	return &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles: settings of stacks that papers measured",
		Long: "Lists what --profile of guise run, and profile in a config, can begin with: the settings, and whose figures\n" +
			"they are.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unexpected %q; expected guise profiles", args[0])
			}
			return nil
		},
		Run: func(cmd *cobra.Command, _ []string) {
			for _, p := range config.Profiles() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n    %s\n    cc = %s", p.Name, p.About, cmp.Or(p.Stack.CC, "cubic"))
				if p.Stack.MPTCP.Enabled {
					fmt.Fprint(cmd.OutOrStdout(), ", mptcp")
				}
				for _, kv := range p.Stack.Sysctls() {
					fmt.Fprintf(cmd.OutOrStdout(), ", %s = %s", kv.Key, kv.Value)
				}
				fmt.Fprintln(cmd.OutOrStdout())
			}
		},
	}
}

func profileNames() (names []string) {
	for _, p := range config.Profiles() {
		names = append(names, p.Name)
	}
	return names
}
