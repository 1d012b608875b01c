// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/plan"
)

func newCapture() *cobra.Command {
	var device, file string
	var count uint64
	cmd := &cobra.Command{
		Use:   "capture STACK [-i IFNAME] [-w FILE]",
		Short: "Write a stack's packets as pcapng",
		Long: "Writes what passes the interfaces of a stack to a file or a pipe, in the format that tcpdump -r and Wireshark\n" +
			"read, until Ctrl-C, the end of the stack, or of the reader of the pipe. For filters there is\n" +
			"guise exec STACK -- tcpdump.",
		Example: "  guise capture web -w web.pcapng\n  guise capture web -i eth0 | wireshark -k -i -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("expected guise capture STACK; guise ls lists the stacks")
			}
			return nil
		},
		ValidArgsFunction: completeStacks,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var options []string
			if device != "" {
				if err := plan.CheckDevice(device); err != nil {
					return usage("-i: %w", err)
				}
				options = append(options, "--interface", device)
			}
			if cmd.Flags().Changed("count") {
				if count == 0 {
					return usage("-c: 0 packets are none; expected at least 1")
				}
				options = append(options, "--count", strconv.FormatUint(count, 10))
			}
			return capture(args[0], file, options)
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&device, "interface", "i", "", "of the interface `IFNAME` of the stack alone (default: all)")
	flags.StringVarP(&file, "write", "w", "-", "into `FILE`, or - for standard output")
	flags.Uint64VarP(&count, "count", "c", 0, "end after `N` packets")
	return cmd
}

func capture(stack, file string, options []string) error {
	program, err := holder.Find("guise-capture")
	if err != nil {
		return err
	}
	if file == "-" {
		if _, err := unix.IoctlGetTermios(1, unix.TCGETS); err == nil {
			return usage("packets are not for a terminal; expected -w FILE, or a pipe behind this command")
		}
	}
	a, err := admit(stack, os.Args[1:]...)
	if err != nil {
		return err
	}
	if file != "-" {
		out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return usage("cannot write %s: %w", file, errors.Unwrap(err))
		}
		if err := unix.Dup3(int(out.Fd()), 1, 0); err != nil {
			return fmt.Errorf("cannot make %s the output: %w", file, err)
		}
	}
	env, err := a.environment()
	if err != nil {
		return err
	}
	// It is a member itself: what is preloaded would join once more.
	return execute(program, append([]string{program}, options...), holder.WithoutPreload(env))
}
