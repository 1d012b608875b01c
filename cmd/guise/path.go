// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

type pathFlags struct {
	delay, delayBack string
	loss, lossBack   string
	rate, rateBack   string
	limit            uint64
	seed             uint64
	mtu              int
	memory           string
	readyFD          int
}

func newPath() *cobra.Command {
	f := &pathFlags{}
	cmd := &cobra.Command{
		Use:   "path [flags] A B [-- CMD [ARG...]]",
		Short: "Delay, lose and slow packets between two taps or namespaces",
		Long: "Makes a tap at each of two ends, and a stack that passes packets between them: each is\n" +
			"delayed, lost or slowed down as told. The ends share a subnet, as if joined by a cable.\n\n" +
			"An end is the name of a network namespace (ip netns), in which a tap " + plan.PathDevice + " is made, or\n" +
			"NAMESPACE:IFNAME for another name, or tap:IFNAME in the current namespace. Any number of\n" +
			",ip=ADDR/LEN after it give the tap addresses.\n\n" +
			"--delay is one-way and applied in EACH direction: --delay 20ms adds 40 ms to a round trip.\n" +
			"--loss and --rate apply to each direction as well. --delay-back, --loss-back and --rate-back\n" +
			"give what goes from B to A other values.\n\n" +
			"The path stays until Ctrl-C or SIGTERM, or while CMD runs; then the taps vanish.",
		Example: "  sudo guise path --delay 20ms --loss 0.2% --rate 100mbit left,ip=192.0.2.1/24 right,ip=192.0.2.2/24\n" +
			"  sudo guise path --delay 5ms tap:a tap:b -- make test",
		Args: func(cmd *cobra.Command, args []string) error {
			ends := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				ends = args[:dash]
				if len(args) == dash {
					return usage("no program after --; expected guise path [flags] A B [-- CMD [ARG...]]")
				}
			}
			if len(ends) != 2 {
				return usage("%d ends of a path given; expected two, as in guise path --delay 20ms A B", len(ends))
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[:2], args[2:])
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.delay, "delay", "0ms", "one-way delay `TIME`, in each direction")
	flags.StringVar(&f.loss, "loss", "0%", "share of packets lost, as `N%`, in each direction")
	flags.StringVar(&f.rate, "rate", "", "`RATE` of each direction, as in 100mbit (default unlimited)")
	flags.StringVar(&f.delayBack, "delay-back", "", "one-way delay `TIME` from B to A (default as --delay)")
	flags.StringVar(&f.lossBack, "loss-back", "", "share of packets lost, as `N%`, from B to A (default as --loss)")
	flags.StringVar(&f.rateBack, "rate-back", "", "`RATE` from B to A (default as --rate)")
	flags.Uint64Var(&f.limit, "limit", 0, "`N` packets held at most, in each direction (default: what the delay holds at the rate, "+
		"10gbit without one, and 1000 more)")
	flags.Uint64Var(&f.seed, "seed", 0, "seed `N` of the losses from A to B; B to A has the next (default: others in each run)")
	flags.IntVar(&f.mtu, "mtu", 1500, "MTU `N` of the path")
	flags.StringVar(&f.memory, "memory", "256M", "`SIZE` of the stack's memory")
	flags.IntVar(&f.readyFD, "ready-fd", -1, "write a line to descriptor `N` once packets pass")
	return cmd
}

// path is what the flags say, checked.
func (f *pathFlags) path(cmd *cobra.Command) (*plan.Path, error) {
	p := &plan.Path{MTU: f.mtu}
	var err error
	if p.Memory, err = plan.ParseMemory(f.memory); err != nil {
		return nil, usage("--memory: %w", err)
	}
	if err := plan.CheckMTU(plan.Tap, f.mtu); err != nil {
		return nil, usage("--mtu: %w", err)
	}
	if p.Forth.Delay, err = plan.ParseDelay(f.delay); err != nil {
		return nil, usage("--delay: %w", err)
	}
	if p.Forth.Loss, err = plan.ParseLoss(f.loss); err != nil {
		return nil, usage("--loss: %w", err)
	}
	if f.rate != "" {
		if p.Forth.Rate, err = plan.ParseRate(f.rate); err != nil {
			return nil, usage("--rate: %w", err)
		}
	}
	if cmd.Flags().Changed("limit") && f.limit == 0 {
		return nil, usage("--limit: a path that holds no packet passes none; expected at least 1")
	}
	p.Forth.Limit, p.Forth.Seed = f.limit, f.seed
	p.Back = p.Forth
	if f.seed != 0 {
		p.Back.Seed++
	}
	if f.delayBack != "" {
		if p.Back.Delay, err = plan.ParseDelay(f.delayBack); err != nil {
			return nil, usage("--delay-back: %w", err)
		}
	}
	if f.lossBack != "" {
		if p.Back.Loss, err = plan.ParseLoss(f.lossBack); err != nil {
			return nil, usage("--loss-back: %w", err)
		}
	}
	if f.rateBack != "" {
		if p.Back.Rate, err = plan.ParseRate(f.rateBack); err != nil {
			return nil, usage("--rate-back: %w", err)
		}
	}
	return p, nil
}

func (f *pathFlags) run(cmd *cobra.Command, ends, command []string) error {
	p, err := f.path(cmd)
	if err != nil {
		return err
	}
	var parsed []plan.End
	for _, text := range ends {
		end, err := plan.ParseEnd(text)
		if err != nil {
			return usage("%w", err)
		}
		parsed = append(parsed, end)
	}
	if parsed[0].String() == parsed[1].String() {
		return usage("both ends of the path are %s; expected two", parsed[0])
	}
	if f.readyFD >= 0 {
		if _, err := unix.FcntlInt(uintptr(f.readyFD), unix.F_GETFD, 0); err != nil {
			return usage("--ready-fd: descriptor %d is not open", f.readyFD)
		}
		unix.CloseOnExec(f.readyFD)
	}
	var program string
	if len(command) > 0 {
		if program, err = findProgram(command[0]); err != nil {
			return err
		}
	}

	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	h, err := layPath(p, parsed, stop)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "guise: path %s - %s is ready: %s\n", parsed[0], parsed[1], describe(p))
	if f.readyFD >= 0 {
		ready := os.NewFile(uintptr(f.readyFD), "ready")
		fmt.Fprintln(ready, "ready")
		ready.Close()
	}
	if program == "" {
		return untilStopped(h, stop)
	}
	status, err := supervise(program, command, os.Environ())
	if _, e := lower(h); err == nil && e != nil {
		err = fmt.Errorf("the path did not last: %w", e)
	}
	if err == nil && status != 0 {
		err = failure{status: status}
	}
	return err
}

// layPath makes the taps, and the stack between them. From then on only the
// holder has the taps open, so they vanish with it.
func layPath(p *plan.Path, ends []plan.End, stop <-chan os.Signal) (*holder.Holder, error) {
	var taps []*os.File
	defer func() {
		for _, device := range taps {
			device.Close()
		}
	}()
	for _, end := range ends {
		device, err := tap.OpenEnd(end, p.MTU)
		if err != nil {
			return nil, err
		}
		taps = append(taps, device)
	}
	h, err := raise(p.Plan(holder.FirstLinkFD), taps, holder.Member, stop)
	return h, err
}

func describe(p *plan.Path) string {
	if p.Forth.String() == p.Back.String() {
		return p.Forth.String() + " each way"
	}
	return p.Forth.String() + " forth; " + p.Back.String() + " back"
}

// untilStopped keeps the path while nobody asks for its end.
func untilStopped(h *holder.Holder, stop <-chan os.Signal) error {
	const forever = time.Duration(1<<63 - 1)
	_, err := h.Summary(forever, stop)
	if errors.As(err, &holder.Interrupted{}) {
		_, err = lower(h)
	}
	if err != nil {
		return fmt.Errorf("the path did not last: %w", err)
	}
	return nil
}
