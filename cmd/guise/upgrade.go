// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/plan"
)

// forever is as long as a drain can be (holder/control/control.c).
const forever = 10 * 365 * 24 * time.Hour

func newUpgrade() *cobra.Command {
	var drain time.Duration
	cmd := &cobra.Command{
		Use:   "upgrade NAME [--drain TIME]",
		Short: "Put a new stack under a name",
		Long: "Starts a second stack from the file that the named one was started from, as that file and this guise are now,\n" +
			"and gives it the name: programs that join from then on are on the new one. Programs on the old one stay on it with\n" +
			"their connections; it is listed by its number, takes no further program, and ends with the last, or after\n" +
			"--drain.\n\n" +
			"A host's tap, a socket, an address on the host's side, or a published port can belong to one stack only. Where the file\n" +
			"names such, the old stack is ended first, as guise down --drain does it, and no program can join before that.",
		Args: func(_ *cobra.Command, args []string) error {
			return checkEnding("guise upgrade NAME", args, drain)
		},
		ValidArgsFunction: completeStacks,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("drain") {
				drain = forever
			}
			return upgrade(args[0], drain)
		}),
	}
	cmd.Flags().DurationVar(&drain, "drain", 0, "end the old stack after `TIME` at the latest, as in 30s (default: with its last program)")
	return cmd
}

func upgrade(name string, drain time.Duration) error {
	// The file that it was made from is what its holder says.
	stack, err := holder.FindOwn(name, os.Args[1:]...)
	if err != nil {
		return err
	}
	status, err := statusOf(stack, 0)
	if err != nil {
		return err
	}
	file := status.Told[toldFile]
	switch {
	case !stack.Named:
		return usage("the stack %s is one of guise run, which has no name to give to another; end it, and run the program again", name)
	case file == "":
		return usage("the stack %s was started from standard input, which is not there any more; guise down %s, and guise up again", name, name)
	case status.Ending:
		return usage("the stack %s is being taken down", name)
	}
	s, err := readConfig(file, name)
	if err != nil {
		return err
	}
	if what := s.exclusive(); what != "" {
		complain(fmt.Errorf("%s can belong to one stack only, so the old one ends first", what))
		if drain == forever && status.Members > 0 {
			complain(fmt.Errorf("%s on it; waiting for the last to leave (--drain sets a time)", programsAre(status.Members)))
		}
		return s.replace(stack, drain)
	}
	return s.succeed(stack, drain)
}

// exclusive names something of the stack's that a second one could not have beside it.
func (s *settings) exclusive() string {
	for _, l := range s.Links {
		switch {
		case l.Kind == "" && hostnet.OnlyTap() != "":
			return "the tap " + hostnet.OnlyTap()
		case l.Kind == plan.Packet && l.Ports == plan.PortsAuto:
			// Each has ports of its own.
		case l.Kind == plan.Packet && l.Device != "":
			return "the interface " + l.Device
		case l.Device != "":
			return "the tap " + l.Device
		case l.Path != "":
			return "the socket " + l.Path
		case l.Kind != plan.Passt && len(l.Addresses) > 0:
			return "the address " + l.Addresses[0].String()
		}
	}
	for _, u := range s.uplinks {
		switch {
		case u.Way == plan.Exclusive:
			return "the interface " + u.Name
		case len(u.Addresses) > 0:
			return "the address " + u.Addresses[0].String()
		case len(u.Ports) > 0:
			return "the ports " + plan.FormatPorts(u.Ports) + " of the host"
		}
	}
	for _, p := range s.publications {
		if p.Host.Port() != 0 {
			return fmt.Sprintf("the port %s/%s", p.Host, p.Protocol())
		}
	}
	return ""
}

// replace ends the old stack, and then starts the new one.
func (s *settings) replace(old holder.Stack, drain time.Duration) error {
	c, err := old.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Down(drain); err != nil {
		return err
	}
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	err = awaitEnd(c, s.Name, drain+deliveryTime, stop, s.Name+" goes on ending by itself, and there will be no new one; guise up starts one")
	if err != nil {
		return err
	}
	socket, err := s.listen(s.Name)
	if err == nil {
		err = s.up(socket)
	}
	if err != nil {
		return fmt.Errorf("the old stack has ended, and the new one cannot be started: %w", err)
	}
	return nil
}

// succeed starts the new stack, gives it the name, and lets the old one end.
func (s *settings) succeed(old holder.Stack, drain time.Duration) error {
	// Before the name changes hands: it leads to the old one only now.
	c, err := old.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	socket, err := holder.Succeed(s.Name)
	if err == nil {
		if err = s.answerAt(socket); err != nil {
			socket.Remove()
		}
	}
	if err == nil {
		err = s.up(socket)
	}
	if err == nil {
		err = socket.TakeOver()
	}
	if err != nil {
		return fmt.Errorf("the stack %s is as it was: %w", s.Name, err)
	}
	members, err := c.Down(drain)
	if err != nil {
		return err
	}
	if members > 0 {
		complain(fmt.Errorf("%s is a new stack; %s still on the old one, %s, which ends with the last", s.Name, programsAre(members), old.Number()))
	}
	return nil
}
