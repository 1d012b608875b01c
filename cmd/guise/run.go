// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/plan"
)

type runFlags struct {
	cc          string
	mptcp       bool
	sysctls     []string
	links       []string
	offload     string
	ips         []string
	gateways    []string
	dns         []string
	publish     []string
	localhost   string
	netem       string
	name        string
	memory      string
	printConfig bool
	verbose     bool
}

func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "Run a program on a stack of its own",
		Long: "Runs a program, and what it starts, on a network stack of its own.\n\n" +
			"Without --link, and with CAP_NET_ADMIN, guise makes a tap, and has the host forward and translate for\n" +
			"the stack; all of it is undone when the last program has left the stack. A user without that capability\n" +
			"has the tap that root made for him once (sudo guise setup), or else goes out through passt, which opens\n" +
			"sockets of the host's own: the stack's TCP ends there.\n\n" +
			"The exit status is the program's own, or 2 for an error in the flags, 125 when guise itself\n" +
			"fails, 126 when the program cannot be executed, and 127 when it is not found.",
		Example: "  sudo guise run --cc westwood -v -- curl -T file http://server/\n" +
			"  guise run -- curl http://server/\n" +
			"  guise run --link none -- redis-server\n" +
			"  guise run --link tap:tap0 --ip 192.0.2.2/24 --gateway 192.0.2.1 -- iperf3 -s",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !f.printConfig {
				return usage("no program to run; expected guise run [flags] -- CMD [ARG...]")
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args)
		}),
	}
	flags := cmd.Flags()
	// What follows CMD is CMD's, whether there is a -- or not.
	flags.SetInterspersed(false)
	flags.SortFlags = false
	flags.StringVar(&f.cc, "cc", "", "congestion control `NAME` of the stack: "+strings.Join(plan.CongestionControls, ", "))
	flags.BoolVar(&f.mptcp, "mptcp", false, "make each TCP socket a Multipath TCP socket")
	flags.StringArrayVar(&f.sysctls, "sysctl", nil, "set a sysctl of the stack, as `KEY=VALUE` (repeatable)")
	flags.StringArrayVar(&f.links, "link", nil, "hang the stack on `LINK` (repeatable): tap (made and routed by guise), tap:IFNAME, "+
		"tap:fd=N, tun:IFNAME, tun:fd=N, passt, stream:PATH, stream:fd=N, or none; followed by ,mac=M ,mtu=N ,offload=off (default: the best that you may have)")
	flags.StringVar(&f.offload, "offload", "on", "`on`: segmentation and checksums may be left to the links, or off: each frame is one packet")
	flags.StringArrayVar(&f.ips, "ip", nil, "address of the stack, as `[IFNAME=]ADDR/LEN` (repeatable; default: one that the host does not use)")
	flags.StringArrayVar(&f.gateways, "gateway", nil, "router of the stack, as `[IFNAME=]ADDR` (repeatable; default: the host)")
	flags.StringArrayVar(&f.dns, "dns", nil, "name server `ADDR` of the program, in place of the host's (repeatable)")
	flags.StringArrayVarP(&f.publish, "publish", "p", nil, "make a port of the stack one of the host, as `[ADDR:]HOSTPORT:PORT[/udp]` "+
		"(repeatable; ADDR 127.0.0.1 if not said; HOSTPORT 0: one that is free)")
	flags.StringVar(&f.localhost, "localhost", "", "`on`: "+plan.HostName+" is the host's localhost, or off (default on, but off with --link none)")
	flags.StringVar(&f.netem, "netem", "", "impair what the stack sends by `SPEC`, as tc-netem(8) says it: \"delay 20ms loss 0.2%\"")
	flags.StringVar(&f.name, "name", "", "`NAME` of the stack, for messages (default: the program's)")
	flags.StringVar(&f.memory, "memory", "256M", "`SIZE` of the stack's memory")
	flags.BoolVar(&f.printConfig, "print-config", false, "print what would be done, and do nothing")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "stay beside the program, and say what went over the wire when it has ended")
	return cmd
}

// settings are what the flags say, checked.
type settings struct {
	plan.Run
	names
}

func (f *runFlags) settings(command []string) (*settings, error) {
	s := &settings{}
	s.Name, s.CC, s.MPTCP, s.Netem = f.name, f.cc, f.mptcp, strings.TrimSpace(f.netem)
	var err error
	if s.Name == "" && len(command) > 0 {
		s.Name = filepath.Base(command[0])
	}
	if err = plan.CheckName(s.Name); err != nil {
		if f.name != "" {
			return nil, usage("--name: %w", err)
		}
		s.Name = "guise"
	}
	if f.cc != "" {
		if err := plan.CheckCongestionControl(f.cc); err != nil {
			return nil, usage("--cc: %w", err)
		}
	}
	if s.Memory, err = plan.ParseMemory(f.memory); err != nil {
		return nil, usage("--memory: %w", err)
	}
	for _, text := range f.sysctls {
		sysctl, err := plan.ParseSysctl(text)
		if err != nil {
			return nil, usage("--sysctl: %w", err)
		}
		s.Sysctls = append(s.Sysctls, sysctl)
	}
	if f.offload != "on" && f.offload != "off" {
		return nil, usage("--offload: %q is neither on nor off", f.offload)
	}
	if s.Links, err = plan.ParseLinks(f.links, f.offload == "on"); err != nil {
		return nil, usage("--link: %w", err)
	}
	for _, text := range f.ips {
		if err := plan.AddAddress(s.Links, text); err != nil {
			return nil, usage("--ip: %w", err)
		}
	}
	for _, text := range f.gateways {
		if err := plan.AddGateway(s.Links, text); err != nil {
			return nil, usage("--gateway: %w", err)
		}
	}
	if err := f.readNames(s); err != nil {
		return nil, err
	}
	if err := plan.CheckNetem(s.Netem); err != nil {
		return nil, usage("--netem: %w", err)
	}
	if s.Netem != "" && len(s.Links) == 0 {
		return nil, usage("--netem impairs a link, and --link none leaves none")
	}
	return s, nil
}

func (f *runFlags) run(cmd *cobra.Command, command []string) error {
	s, err := f.settings(command)
	if err != nil {
		return err
	}
	if f.printConfig {
		return f.print(cmd, s)
	}
	program, err := findProgram(command[0])
	if err != nil {
		return err
	}
	if err := checkPreloadable(program); err != nil {
		return err
	}
	preload, err := holder.Find(holder.Preload)
	if err != nil {
		return err
	}
	if _, err := holder.Find(holder.Program); err != nil {
		return err
	}
	more := s.environment()
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	h, err := f.prepare(s, stop)
	if err != nil {
		return err
	}
	ticket, err := h.MoveTicket()
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	env, err := holder.Environment(os.Environ(), preload, ticket, s.MPTCP)
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	env = append(env, more...)
	signal.Stop(stop)
	select {
	case caught := <-stop:
		return errors.Join(interrupted(caught), abandon(h))
	default:
	}
	f.warnOfPasst(s)
	if f.verbose {
		return attend(h, program, command, env, s.throughPasst())
	}
	return errors.Join(execute(program, command, env), abandon(h))
}

// prepare makes the host ready, and then the stack. When it fails, it has
// undone what it did.
func (f *runFlags) prepare(s *settings, stop <-chan os.Signal) (h *holder.Holder, err error) {
	id := fmt.Sprint(os.Getpid())
	if f.name != "" {
		id = f.name + "_" + id
	}
	ports, err := s.bindPorts()
	if err != nil {
		return nil, err
	}
	defer closeAll(ports)
	socket, err := s.listen("")
	if err != nil && f.verbose {
		complain(fmt.Errorf("guise ls does not list this stack: %w", err))
	}
	defer func() {
		if err != nil {
			socket.Remove()
		}
	}()
	host, err := hostnet.Prepare(id, s.Links)
	if err != nil {
		return nil, err
	}
	defer host.CloseLinks()
	if f.verbose {
		for _, note := range host.Notes {
			complain(errors.New(note))
		}
	}
	if journal := host.Journal(); journal != "" {
		self, err := os.Executable()
		if err == nil {
			s.Undo, err = plan.NewUndo(self, journal)
		}
		if err != nil {
			return nil, errors.Join(err, host.Undo())
		}
	}
	h, pid, err := raise(s.Plan(holder.FirstLinkFD), slices.Concat(host.Links, ports, socket.Files()), stop)
	if err != nil {
		return nil, errors.Join(err, host.Undo())
	}
	socket.Close()
	if err := host.HandOver(pid); err != nil {
		return nil, errors.Join(err, abandon(h))
	}
	return h, nil
}

// abandon gives up a stack that no program came to; its holder undoes what
// was done for it. That there is nothing to say of it is no error.
func abandon(h *holder.Holder) error {
	if _, err := lower(h); errors.Is(err, holder.ErrTime) {
		return fmt.Errorf("the holder of the stack has not ended within %v", lastWords)
	}
	return nil
}

// attend runs the program beside guise, and ends with a line of proof.
func attend(h *holder.Holder, program string, command, env []string, passt bool) error {
	status, err := supervise(program, command, env)
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	h.Ticket.Close()
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	summary, err := h.Summary(lastWords, stop)
	switch {
	case errors.Is(err, holder.ErrTime), errors.As(err, &holder.Interrupted{}):
		complain(fmt.Errorf("other programs are still on the stack, so there is no summary yet"))
	case err != nil:
		complain(err)
		sweep()
	default:
		if passt {
			summary.Reach = "as far as passt"
		}
		complain(errors.New(summary.String()))
	}
	if status == 0 {
		return nil
	}
	return failure{status: status}
}

// throughPasst says whether the stack's only way out is passt.
func (s *settings) throughPasst() bool {
	return len(s.Links) > 0 && !slices.ContainsFunc(s.Links, func(l *plan.Link) bool { return l.Kind != plan.Passt })
}

// warnOfPasst says that what was asked for does not get further than passt.
func (f *runFlags) warnOfPasst(s *settings) {
	var asked []string
	if f.cc != "" {
		asked = append(asked, "--cc "+f.cc)
	}
	if f.mptcp {
		asked = append(asked, "--mptcp")
	}
	if len(asked) > 0 && s.throughPasst() {
		complain(fmt.Errorf("%s ends at passt, which speaks TCP of the host's own on the wire; `sudo guise setup`, once, "+
			"gives you a tap that carries the stack's there", strings.Join(asked, " with ")))
	}
}
