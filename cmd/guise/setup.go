// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"github.com/spf13/cobra"

	"guise/internal/hostnet/setup"
)

func newSetup() *cobra.Command {
	s := &setup.Setup{}
	cmd := &cobra.Command{
		Use:   "setup [--user NAME] [--uplink IFNAME]...",
		Short: "Give a user TCP on the wire, or uplinks, without root",
		Long: "Does once what takes root: makes a persistent tap that belongs to the user, and has the host forward\n" +
			"and translate for what is behind it, after a reboot as well. From then on that user's guise run takes the\n" +
			"tap without any privilege.\n\n" +
			"With --uplink, lets that user's guise run --uplink share interfaces of the host, and makes no tap: a\n" +
			"service of root's opens them, and checks what the user asks for. What is written and done is listed: + new, = there already, - removed,\n" +
			"$ a command.",
		Example: "  sudo guise setup\n  sudo guise setup --user alice --taps 2\n  sudo guise setup --user alice --uplink wlan0 --uplink usb0\n  sudo guise setup --undo",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unexpected %q; the user is named by --user", args[0])
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			s.Out = cmd.OutOrStdout()
			return s.Do()
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.User, "user", "", "the user, by `NAME` or number (default: the one that called sudo)")
	flags.StringArrayVar(&s.Uplinks, "uplink", nil, "let that user share the host's interface `IFNAME` (repeatable); with --undo, no longer")
	flags.IntVar(&s.Taps, "taps", 0, "make `N` taps for that user, for as many stacks at a time (default: 1, or as many as there are)")
	flags.BoolVar(&s.Undo, "undo", false, "take it all back for that user; for all, where none is known")
	flags.BoolVar(&s.DryRun, "dry-run", false, "print what would be written and done, and do nothing")
	return cmd
}
