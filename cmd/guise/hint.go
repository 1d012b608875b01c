// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"slices"

	"github.com/spf13/cobra"

	"guise/internal/suggest"
)

// otherWords are what commands of other tools are called, and what does that here.
var otherWords = []struct {
	words []string
	hint  string
}{
	{[]string{"list", "ps", "status", "stat", "show", "stacks", "top"}, "guise ls lists the stacks"},
	{[]string{"inspect", "info"}, "guise ls --json says what is known of each stack"},
	{[]string{"connections", "connection", "subflows", "sockets", "netstat"}, "guise ls -c lists the connections of stacks, and their subflows"},
	{[]string{"stop", "kill", "rm", "remove", "delete", "destroy", "end", "halt", "shutdown", "quit"}, "guise down STACK ends a stack"},
	{[]string{"create", "start", "new", "add", "make", "launch"},
		"guise up FILE starts a stack that stays, guise run -- CMD a program on a stack of its own"},
	{[]string{"restart", "reload", "replace"}, "guise upgrade STACK gives its name to a new stack"},
	{[]string{"enter", "attach", "join", "shell", "netns"}, "guise exec STACK -- TOOL runs a tool on a stack, guise run --stack STACK -- CMD a program"},
	{[]string{"strace", "gdb", "debug", "trace"}, "guise detach PID lets a debugger at a program on a stack; guise run -- strace CMD needs no such thing"},
	{[]string{"dump", "sniff", "pcap"}, "guise capture STACK writes a stack's packets"},
	{[]string{"check", "diagnose", "test", "verify"}, "guise doctor says what this machine allows"},
	{[]string{"mptcp", "multipath", "mptcpize"}, "guise run --mptcp -- CMD gives a program Multipath TCP, guise check-mptcp HOST says whether that works"},
	{[]string{"init", "install", "uninstall"}, "guise setup makes a tap for a user, and --undo takes it away"},
	{[]string{"netem", "delay"}, "guise path is a path with delay and loss; guise run --netem impairs what one stack sends"},
	{[]string{"version"}, "guise --version says it"},
	{[]string{"sysctl", "ip", "ss", "tc", "ping"}, "guise exec STACK -- CMD runs it on a stack that is there, guise run -- CMD on one of its own"},
}

// hint is what a user who typed word may have meant.
func hint(root *cobra.Command, word string) string {
	for _, other := range otherWords {
		if slices.Contains(other.words, word) {
			return other.hint
		}
	}
	var commands []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c.Name())
		}
	}
	if len(suggest.Near(word, commands)) == 0 {
		if _, err := findProgram(word); err == nil {
			return "for the program of that name, guise run -- " + word
		}
	}
	return suggest.Hint(word, commands)
}
