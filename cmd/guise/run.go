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
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"guise/internal/config"
	"guise/internal/holder"
	"guise/internal/image"
	"guise/internal/plain"
	"guise/internal/plan"
)

type runFlags struct {
	stack       string
	mode        string
	cc          string
	extensions  []string
	mptcp       bool
	served      bool
	user        string
	sysctls     []string
	links       []string
	uplinks     []string
	prefer      string
	budgets     []string
	offload     string
	ips         []string
	gateways    []string
	dns         []string
	publish     []string
	localhost   string
	netem       string
	name        string
	profile     string
	memory      string
	privileges  string
	printConfig bool
	traceCalls  bool
	verbose     bool
	asJSON      bool
}

func newRun() *cobra.Command { return runCommand(&runFlags{}) }

// runCommand is guise run with its flags in f; guise check-mptcp takes some of them.
func runCommand(f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "Run a program on a stack of its own",
		Long: "Runs a program, and what it starts, on a network stack of its own.\n\n" +
			"Without --link, and with CAP_NET_ADMIN, guise makes a tap, and has the host forward and translate for\n" +
			"the stack; all of it is undone when the last program has left the stack. A user without that capability\n" +
			"has the tap that root made once for this user (sudo guise setup), or else goes out through passt, which\n" +
			"opens sockets of the host's own: the stack's TCP ends there.\n\n" +
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
	flags.StringVar(&f.stack, "stack", "", "run the program on the stack `STACK`, which is there already (guise ls); no flag that makes a stack may stand beside it")
	for flag, values := range map[string]func() []string{
		"stack":   stackIDs,
		"cc":      f.congestionControls,
		"profile": profileNames,
		"link":    plan.LinkForms,

		"extension":  image.Extensions,
		"privileges": func() []string { return plan.Privileges },
	} {
		defer cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	}
	flags.StringVar(&f.mode, "mode", modeAuto, "how the program comes to the stack: `preload`, tun (in a network namespace whose only way out is the stack, "+
		"for programs that cannot be preloaded), or auto")
	flags.StringVar(&f.cc, "cc", "", "congestion control `NAME` of the stack (guise --version lists them)")
	flags.StringArrayVar(&f.extensions, "extension", nil, "take a kernel that has the extension `NAME`, code that is not Linux's own (repeatable; guise --version lists them)")
	flags.StringVar(&f.user, "user", "", "the stack belongs to the user `NAME`, or number, not to who starts it (root only): what carries it has that user's rights, and programs of others are served")
	flags.BoolVar(&f.served, "served", false, "programs do not map the stack's memory; another process makes their calls")
	flags.BoolVar(&f.mptcp, "mptcp", false, "make each TCP socket a Multipath TCP socket")
	flags.StringArrayVar(&f.sysctls, "sysctl", nil, "set a sysctl of the stack, as `KEY=VALUE` (repeatable)")
	flags.StringArrayVar(&f.links, "link", nil, "connect the stack by `LINK` (repeatable): "+strings.Join(plan.LinkForms(), ", ")+
		"; followed by ,mac=M ,mtu=N ,offload=off; tap alone is made and routed by guise (default: the best that you may have)")
	flags.StringArrayVar(&f.uplinks, "uplink", nil, "make the host's interface a path of the stack, and follow what becomes of it, as `IFNAME[,OPTION...]` (repeatable; root, or what guise setup --uplink has allowed): "+
		"share (default: its addresses are the host's), own, exclusive, ports=61000-65535,8080 address=A/LEN gateway=A mtu=N metric=N backup signal fullmesh")
	flags.StringVar(&f.prefer, "prefer", "", "the uplink `IFNAME` is used first, the others are backup")
	flags.StringArrayVar(&f.budgets, "budget", nil, "the uplink is backup when it has carried so much, as `IFNAME=SIZE`, as in wwan0=200MB (repeatable)")
	flags.StringVar(&f.offload, "offload", "on", "`on`: segmentation and checksums may be left to the links, or off: each frame is one packet")
	flags.StringArrayVar(&f.ips, "ip", nil, "address of the stack, as `[IFNAME=]ADDR/LEN` (repeatable; default: one that the host does not use)")
	flags.StringArrayVar(&f.gateways, "gateway", nil, "router of the stack, as `[IFNAME=]ADDR` (repeatable; default: the host)")
	flags.StringArrayVar(&f.dns, "dns", nil, "name server `ADDR` of the program, in place of the host's (repeatable)")
	flags.StringArrayVarP(&f.publish, "publish", "p", nil, "make a port of the stack one of the host, as `[ADDR:]HOSTPORT:PORT[/udp]` "+
		"(repeatable; ADDR 127.0.0.1 if not said; HOSTPORT 0: one that is free)")
	flags.StringVar(&f.localhost, "localhost", "", "`on`: "+plan.HostName+" is the host's localhost, or off (default on, but off with --link none and on links that guise did not make)")
	flags.StringVar(&f.netem, "netem", "", "impair what the stack sends by `SPEC`, as tc-netem(8) says it: \"delay 20ms loss 0.2%\"")
	flags.StringVar(&f.name, "name", "", "`NAME` of the stack, for messages (default: the program's)")
	flags.StringVar(&f.profile, "profile", "", "begin with the settings of the profile `NAME`; guise profiles lists them")
	flags.StringVar(&f.memory, "memory", "256M", "`SIZE` of the stack's memory")
	flags.StringVar(&f.privileges, "privileges", "all", "what programs may do on the stack: `all`, whoever runs them, or host, "+
		"what their capabilities on the host allow (ports below 1024, packet sockets, addresses)")
	flags.BoolVar(&f.traceCalls, "trace-calls", false, "say of each socket whether it is the stack's or the host's, and why, on standard error")
	flags.BoolVar(&f.printConfig, "print-config", false, "print what would be done, and do nothing")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "stay beside the program, and say what went over the wire when it has ended, and which programs were on the stack")
	flags.BoolVar(&f.asJSON, "json", false, "as -v, with what it says at the end as one JSON object in a line")
	return cmd
}

// congestionControls are those of the image that the flags so far lead to.
func (f *runFlags) congestionControls() []string {
	kernel, err := image.Choose(f.extensions)
	if err != nil {
		return nil
	}
	return kernel.Congestion
}

// wishes are what the flags say.
func (f *runFlags) wishes() (*wishes, error) {
	w := &wishes{origin: plan.FlagOrigin, Stack: &config.Stack{
		Name: f.name, Profile: f.profile, Memory: f.memory, CC: f.cc, Extensions: f.extensions, Netem: f.netem,
		DNS: f.dns, Publish: f.publish, MPTCP: config.MPTCP{Enabled: f.mptcp}, Privileges: f.privileges, Served: f.served, User: f.user,
	}}
	for _, text := range f.sysctls {
		sysctl, err := plan.ParseSysctl(text)
		if err != nil {
			return nil, usage("--sysctl: %w", err)
		}
		w.AddSysctl(sysctl.Key, sysctl.Value)
	}
	switch on := f.localhost == "on"; f.localhost {
	case "":
	case "on", "off":
		w.Localhost = &on
	default:
		return nil, usage("--localhost: %q is neither on nor off", f.localhost)
	}
	if f.offload != "on" && f.offload != "off" {
		return nil, usage("--offload: %q is neither on nor off", f.offload)
	}
	var err error
	if w.links, err = plan.ParseLinks(f.links, f.offload == "on"); err != nil {
		return nil, usage("--link: %w", err)
	}
	if err := f.readUplinks(w); err != nil {
		return nil, err
	}
	for _, text := range f.ips {
		if err := plan.AddAddress(w.links, text); err != nil {
			return nil, usage("--ip: %w", err)
		}
	}
	for _, text := range f.gateways {
		if err := plan.AddGateway(w.links, text); err != nil {
			return nil, usage("--gateway: %w", err)
		}
	}
	return w, nil
}

// settings are what the flags say, checked. A stack without a name has that of its program.
func (f *runFlags) settings(command []string) (*settings, error) {
	if err := checkMode(f.mode); err != nil {
		return nil, err
	}
	w, err := f.wishes()
	if err != nil {
		return nil, err
	}
	fallback := ""
	if len(command) > 0 {
		fallback = filepath.Base(command[0])
	}
	s, err := w.settings(fallback)
	if err != nil {
		return nil, err
	}
	s.tun = f.mode == modeTun
	s.id = fmt.Sprint(os.Getpid())
	if f.name != "" {
		s.id = f.name + "_" + s.id
	}
	return s, nil
}

func (f *runFlags) run(cmd *cobra.Command, command []string) error {
	if f.traceCalls {
		os.Setenv("GUISE_TRACE", "1") // for what becomes the program (preload/trace.c)
	}
	if f.mode == modePreload {
		os.Setenv("GUISE_OUTSIDE", "quiet") // asked for, so known (preload/process/outside.c)
	}
	if f.stack != "" {
		return f.runOn(cmd, command)
	}
	f.verbose = f.verbose || f.asJSON
	// A variable of a script that is not set must not make the stack the caller's own.
	if cmd.Flags().Changed("user") && f.user == "" {
		return usage("--user: %w", plan.CheckUser(f.user))
	}
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
	if err := f.choose(&s.tun, program); err != nil {
		return err
	}
	if s.tun {
		f.warnOfTrace()
		s.who = holder.Guest
	}
	preload, err := holder.Find(holder.Preload)
	if err != nil {
		return err
	}
	if _, err := holder.Find(holder.Program); err != nil {
		return err
	}
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	socket, err := s.listen("")
	if err != nil && len(s.uplinks) > 0 {
		return fmt.Errorf("uplinks take a control socket: %w", err)
	}
	if err != nil && f.verbose {
		complain(fmt.Errorf("guise ls does not list this stack: %w", err))
	}
	h, err := s.prepare(socket, stop)
	if err != nil {
		return err
	}
	ticket, err := h.MoveTicket()
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	way, err := s.way(program, command, preload, ticket)
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	signal.Stop(stop)
	select {
	case caught := <-stop:
		return errors.Join(interrupted(caught), abandon(h))
	default:
	}
	f.warnOfPasst(s)
	if len(s.uplinks) > 1 && !s.MPTCP {
		complain(errors.New("each connection uses one of the uplinks; --mptcp lets a connection use all of them"))
	}
	s.warnOfPing(program)
	if f.verbose {
		return attend(h, way, s.reach(), f.asJSON)
	}
	return errors.Join(execute(way.path, way.argv, way.env), abandon(h))
}

// runOn runs the program on a stack that is there already.
func (f *runFlags) runOn(cmd *cobra.Command, command []string) error {
	var beside []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "stack" && flag.Name != "trace-calls" && flag.Name != "mode" {
			beside = append(beside, "--"+flag.Name)
		}
	})
	if err := checkMode(f.mode); err != nil {
		return err
	}
	if len(beside) > 0 {
		return usage("--stack %s is a stack that is there already, and %s would be of a new one; expected --stack alone, or with --mode",
			f.stack, strings.Join(beside, ", "))
	}
	if len(command) == 0 {
		return usage("no program to run; expected guise run --stack %s -- CMD [ARG...]", f.stack)
	}
	form := append([]string{"run", "--stack", f.stack, "--"}, command...)
	program, err := findProgram(command[0])
	if err != nil {
		return err
	}
	tun := f.mode == modeTun
	if err := f.choose(&tun, program); err != nil {
		return err
	}
	if !tun {
		path, argv := asMember(program, command)
		return join(f.stack, path, argv, form)
	}
	f.warnOfTrace()
	return visit(f.stack, program, command, form)
}

// warnOfTrace says that a guest's calls are not seen.
func (f *runFlags) warnOfTrace() {
	if f.traceCalls {
		complain(errors.New("--trace-calls: all that this program sends goes to the stack, by its namespace; its calls are not seen"))
	}
}

// abandon gives up a stack that no program joined; its holder undoes what
// was done for it. A holder without a summary is no error here.
func abandon(h *holder.Holder) error {
	if _, err := lower(h); errors.Is(err, holder.ErrTime) {
		return fmt.Errorf("the holder of the stack has not ended within %v", lastWords)
	}
	return nil
}

// attend runs the program beside guise, and ends with a line of proof.
func attend(h *holder.Holder, w *way, reach string, asJSON bool) error {
	status, err := supervise(w.path, w.argv, w.env)
	if err != nil {
		return errors.Join(err, abandon(h))
	}
	w.close()
	h.Ticket.Close()
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	summary, err := h.Summary(lastWords, stop)
	tell := complain
	if asJSON {
		tell = func(err error) { fmt.Fprintln(os.Stderr, plain.JSON(holder.NoSummary(err))) }
	}
	switch {
	case errors.Is(err, holder.ErrTime), errors.As(err, &holder.Interrupted{}):
		tell(errors.New("the stack has not ended yet, so there is no summary: other programs are on it, " +
			"or what they sent is still on its way (guise ls lists it)"))
	case err != nil:
		tell(err)
		sweep()
	default:
		summary.Reach = reach
		if asJSON {
			fmt.Fprintln(os.Stderr, plain.JSON(summary.JSON()))
		} else {
			complain(errors.New(summary.String()))
		}
	}
	if status == 0 {
		return nil
	}
	return failure{status: status}
}

// readUplinks reads the uplinks, which stand in place of links.
func (f *runFlags) readUplinks(w *wishes) error {
	for _, text := range f.uplinks {
		u, err := plan.ParseUplink(text)
		if err != nil {
			return usage("--uplink: %w", err)
		}
		w.uplinks = append(w.uplinks, u)
	}
	if f.prefer != "" {
		if err := plan.Prefer(w.uplinks, f.prefer); err != nil {
			return usage("--prefer: %w", err)
		}
	}
	for _, text := range f.budgets {
		if err := plan.SetBudget(w.uplinks, text); err != nil {
			return usage("--budget: %w", err)
		}
	}
	if len(w.uplinks) == 0 {
		return nil
	}
	for flag, values := range map[string][]string{"link": f.links, "ip": f.ips, "gateway": f.gateways} {
		if len(values) > 0 {
			return usage("--%s is for links, and --uplink stands in place of them; expected uplinks alone "+
				"(an address of the stack's own: --uplink %s,address=ADDR/LEN,gateway=ADDR)", flag, w.uplinks[0].Name)
		}
	}
	w.links = nil
	return nil
}

// throughPasst says whether the stack's only way out is passt.
func (s *settings) throughPasst() bool {
	return len(s.Links) > 0 && !slices.ContainsFunc(s.Links, func(l *plan.Link) bool { return l.Kind != plan.Passt })
}

// reach is how far the stack's TCP comes.
func (s *settings) reach() string {
	switch {
	case len(s.Links) == 0 && len(s.uplinks) == 0:
		return holder.ReachNone
	case s.throughPasst():
		return holder.ReachPasst
	}
	return holder.ReachWire
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

// warnOfPing says that what pings is not heard: passt sends echo requests by a kind of socket
// that the host lets only some groups of users have.
func (s *settings) warnOfPing(program string) {
	var first, last int
	text, err := os.ReadFile(pingGroups)
	if err != nil || !s.throughPasst() || filepath.Base(program) != "ping" {
		return
	}
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil {
		return
	}
	groups, _ := os.Getgroups()
	if slices.ContainsFunc(append(groups, os.Getegid()), func(group int) bool { return first <= group && group <= last }) {
		return
	}
	complain(errors.New("passt may not ping beyond this host: net.ipv4.ping_group_range leaves your group out; " +
		"sudo sysctl net.ipv4.ping_group_range=\"0 2147483647\" lets all ping, or `sudo guise setup`, once, gives you a tap"))
}

const pingGroups = "/proc/sys/net/ipv4/ping_group_range"
