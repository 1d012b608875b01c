// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"guise/internal/holder"
)

const checkMPTCPProgram = "guise-check-mptcp"

// stackFlags are those of guise run that say what stack to make, and make sense for a check.
var stackFlags = []string{"link", "uplink", "ip", "gateway", "dns", "sysctl", "netem", "profile", "user", "served"}

// checkFlags are what guise check-mptcp was asked for.
type checkFlags struct {
	run     runFlags // of the stack that is made, or that is there
	host    bool
	serve   bool
	asJSON  bool
	timeout time.Duration
	wait    time.Duration
}

// newCheckMPTCP has guise-check-mptcp, which is written in C as it must be on a stack, ask or
// answer: on a stack of its own, on one that is there, or on the host's.
func newCheckMPTCP() *cobra.Command {
	f := &checkFlags{}
	run := runCommand(&f.run)
	f.run.mptcp = true
	cmd := &cobra.Command{
		Use:   "check-mptcp [flags] HOST[:PORT] | --serve [ADDR:]PORT",
		Short: "Say whether a connection is Multipath TCP end to end",
		Long: "Connects to PORT (default 80) of HOST, and says whether the connection is Multipath TCP end to end, which\n" +
			"paths it has, and what fell back and why: on a stack of its own that is made as guise run --mptcp makes it, on\n" +
			"the stack of --stack, or on the host's with --host. Any server will do as the other end. With --serve it is the\n" +
			"other end itself, until Ctrl-C, and tells the one that asks what arrived there: so the two can say whether a\n" +
			"middlebox strips the option, and where.\n\n" +
			"The exit status is 0 for Multipath TCP, 1 for plain TCP, 2 for an error in the flags, 3 when the connection is\n" +
			"refused, 4 without an answer, 5 when the name is not found, 6 when the connection broke, and 125 when guise\n" +
			"itself fails.",
		Example: "  guise check-mptcp www.example.org\n" +
			"  sudo guise check-mptcp --uplink wlan0 --uplink usb0 www.example.org\n" +
			"  guise check-mptcp --host www.example.org\n" +
			"  guise check-mptcp --host --serve 8080\n" +
			"  guise check-mptcp --stack phone 192.0.2.7:8080",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage("expected guise check-mptcp HOST[:PORT], or guise check-mptcp --serve [ADDR:]PORT")
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return f.check(cmd, args[0])
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.serve, "serve", false, "be the other end, at a port of all addresses or of ADDR")
	flags.BoolVar(&f.asJSON, "json", false, "answer with one JSON object in a line")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "wait for an answer for `TIME`")
	flags.DurationVar(&f.wait, "wait", time.Second, "wait for further paths until for `TIME` none has come")
	flags.BoolVar(&f.host, "host", false, "check the host's own Multipath TCP")
	flags.StringVar(&f.run.stack, "stack", "", "check on the stack `STACK`, which is there already (guise ls)")
	for _, name := range stackFlags {
		flags.AddFlag(run.Flags().Lookup(name))
	}
	cmd.RegisterFlagCompletionFunc("stack", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return stackIDs(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (f *checkFlags) check(cmd *cobra.Command, where string) error {
	words, err := f.words(where)
	if err != nil {
		return err
	}
	var making []string // a stack
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, name := range stackFlags {
			if flag.Name == name {
				making = append(making, "--"+name)
			}
		}
	})
	switch {
	case f.host && f.run.stack != "":
		return usage("--host is the host's stack, and --stack %s another; expected one of them", f.run.stack)
	case (f.host || f.run.stack != "") && len(making) > 0:
		return usage("%s would be of a stack that is made, and --host or --stack is one that is there", strings.Join(making, ", "))
	}
	program, err := holder.Find(checkMPTCPProgram)
	if err != nil {
		return err
	}
	command := append([]string{program}, words...)
	if f.host {
		return execute(program, command, holder.WithoutPreload(holder.WithoutStack(os.Environ())))
	}
	if f.run.stack != "" {
		return join(f.run.stack, program, command, append([]string{"check-mptcp", "--stack", f.run.stack}, where))
	}
	f.run.mode = modePreload
	return f.run.run(cmd, command)
}

// words are those that guise-check-mptcp is to be started with.
func (f *checkFlags) words(where string) (words []string, err error) {
	if f.serve {
		address, port, err := splitListen(where)
		if err != nil {
			return nil, usage("--serve %s: %w", where, err)
		}
		words = []string{"serve", address, port}
	} else {
		host, port, err := splitHost(where)
		if err != nil {
			return nil, usage("%s: %w", where, err)
		}
		if f.timeout <= 0 || f.wait < 0 {
			return nil, usage("--timeout is more than nothing, and --wait not less; expected a time as in 5s")
		}
		seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
		words = []string{"ask", host, port, net.JoinHostPort(host, port), seconds(f.timeout), seconds(f.wait)}
	}
	if f.asJSON {
		words = append(words, "--json")
	}
	return words, nil
}

// splitHost reads HOST[:PORT], where HOST may be an IPv6 address, in brackets or, without a port,
// as it is.
func splitHost(where string) (host, port string, err error) {
	host, port = where, "80"
	if _, err := netip.ParseAddr(where); err != nil && strings.Contains(where, ":") {
		if host, port, err = net.SplitHostPort(where); err != nil {
			return "", "", errors.New("expected HOST or HOST:PORT, as in www.example.org:80 or [2001:db8::1]:80")
		}
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, " \t\r\n/") {
		return "", "", errors.New("there is no such host; expected HOST or HOST:PORT, as in www.example.org:80")
	}
	return host, port, checkPort(port)
}

// splitListen reads [ADDR:]PORT; the address of all is "-".
func splitListen(where string) (address, port string, err error) {
	if !strings.Contains(where, ":") {
		return "-", where, checkPort(where)
	}
	address, port, err = net.SplitHostPort(where)
	if err == nil {
		_, err = netip.ParseAddr(address)
	}
	if err != nil {
		return "", "", errors.New("expected a port, or an address with one, as in 192.0.2.7:8080 or [2001:db8::7]:8080")
	}
	return address, port, checkPort(port)
}

func checkPort(port string) error {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("the port is a number of 1 to 65535")
	}
	return nil
}
