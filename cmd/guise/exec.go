// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"guise/internal/holder"
)

func newExec() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec STACK -- TOOL [ARG...]",
		Short: "Run a tool on a stack that is there already",
		Long: "Runs a program joined to a stack of guise ls, named or by its number, beside the programs on it: ip, ss, tc,\n" +
			"ethtool, nft, ping and traceroute then show and change that stack. Tools of /sbin are found without it in\n" +
			"$PATH. One that would gain privileges when it starts, as ping may, runs without them: on a stack every program\n" +
			"has all rights over that stack.",
		Example: "  guise exec web -- ss -ti\n  guise exec 4711 -- ip -s link",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("expected guise exec STACK -- TOOL [ARG...]; guise ls lists the stacks")
			}
			return nil
		},
		ValidArgsFunction: completeStacks,
		RunE: action(func(_ *cobra.Command, args []string) error {
			return execOn(args[0], args[1:])
		}),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func execOn(stack string, command []string) error {
	if command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return usage("no tool to run; expected guise exec %s -- TOOL [ARG...]", stack)
	}
	program, err := findTool(command[0])
	if err != nil {
		return err
	}
	form := append([]string{"exec", stack, "--"}, command...)
	if gainsPrivileges(program) {
		if path, argv, err := withoutPrivileges(program, command); err == nil {
			return join(stack, path, argv, form)
		}
	}
	if err := checkPreloadable(program); err != nil {
		return err
	}
	return join(stack, program, command, form)
}

// findTool is findProgram, where users may lack the folders of root's tools in $PATH.
func findTool(name string) (string, error) {
	program, err := findProgram(name)
	if f := (failure{}); err == nil || strings.Contains(name, "/") || !errors.As(err, &f) || f.status != statusNotFound {
		return program, err
	}
	for _, folder := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path := filepath.Join(folder, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", err
}

// admitted is the right to run programs on a stack that is there already.
type admitted struct {
	stack  holder.Stack
	ticket *os.File
	env    []string // of the programs, without what names the ticket
}

// admit asks the holder of a stack for that right. command is what the user asked guise for.
func admit(id string, command ...string) (*admitted, error) {
	stack, err := holder.FindOwn(id, command...)
	if err != nil {
		return nil, err
	}
	c, err := stack.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	status, err := c.Status(0)
	if err != nil {
		return nil, err
	}
	if status.Version != version {
		return nil, usage("the stack %s is held by guise %s, and this is guise %s: its programs could not use it; "+
			"take the guise that it was started with, or guise upgrade %s", id, status.Version, version, id)
	}
	a := &admitted{stack: stack}
	for key, value := range status.Told {
		if name, ok := strings.CutPrefix(key, toldEnvironment); ok {
			a.env = append(a.env, name+"="+value)
		}
	}
	// The connection has had its second answer, or may still get it: a new one has neither.
	again, err := stack.Dial()
	if err != nil {
		return nil, err
	}
	defer again.Close()
	a.ticket, err = again.Ticket()
	return a, err
}

// told is the value of a variable of its programs, or "".
func (a *admitted) told(name string) string {
	for _, variable := range a.env {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// environment is that of a program on the stack; the ticket is to be inherited as it is.
func (a *admitted) environment() ([]string, error) {
	preload, err := holder.Find(holder.Preload)
	if err != nil {
		return nil, err
	}
	var fd int
	if a.ticket, fd, err = holder.MoveTicket(a.ticket); err != nil {
		return nil, err
	}
	env, err := holder.Environment(os.Environ(), preload, fd, false)
	return append(env, a.env...), err
}

// join becomes a program on a stack that is there already.
func join(id, program string, argv []string, command []string) error {
	a, err := admit(id, command...)
	if err != nil {
		return err
	}
	env, err := a.environment()
	if err != nil {
		return err
	}
	return execute(program, argv, env)
}

func completeStacks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return stackIDs(), cobra.ShellCompDirectiveNoFileComp
}

func stackIDs() (ids []string) {
	for _, s := range holder.Stacks() {
		ids = append(ids, s.ID)
	}
	return ids
}
