// SPDX-License-Identifier: GPL-2.0-only

// guise gives a program its own Linux network stack. This is its command line:
// it reads what the user wants, prepares the host, starts the holder of a
// stack, and becomes the program. One file a subcommand.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"guise/internal/config"
	"guise/internal/doctor"
	"guise/internal/holder"
	"guise/internal/hostnet"
	"guise/internal/hostnet/access"
	"guise/internal/hostnet/guests"
	"guise/internal/plain"
	"guise/internal/suggest"
	"guise/internal/uplink"
	"guise/internal/uplink/lease"
	"guise/internal/uplink/opener"
)

// Exit statuses of guise itself, as of env(1) and timeout(1); any other is the
// program's own.
const (
	statusUsage         = 2
	statusFailed        = 125
	statusNotExecutable = 126
	statusNotFound      = 127
)

// failure is an error with the exit status it ends guise with. Without an
// error nothing is said: the status is that of a program.
type failure struct {
	status int
	error
}

func (f failure) Unwrap() error { return f.error }

func usage(format string, args ...any) error {
	return failure{statusUsage, fmt.Errorf(format, args...)}
}

// guise asks the kernel for things that hold for one thread: its mount
// namespace, and the signal that its children get when it dies. So all of it
// happens on the first thread, which is also the process.
func init() { runtime.LockOSThread() }

func main() {
	if access.Elevated() {
		complain(errors.New("this file gives more rights than its caller has (setuid, setgid or capabilities), which guise is not made for: " +
			"the caller's environment says what it runs; take them away, and use sudo, or sudo guise setup once for a user"))
		os.Exit(statusFailed)
	}
	own := map[string]func([]string) error{holder.Spawn: holder.RunSpawn, guests.Make: guests.RunMake, doctor.Traced: doctor.RunTraced,
		uplink.Command: uplink.RunFollow, lease.Command: lease.RunApart, opener.Command: opener.RunServe}
	if len(os.Args) > 1 && own[os.Args[1]] != nil {
		if err := own[os.Args[1]](os.Args[2:]); err != nil {
			complain(err)
			os.Exit(statusFailed)
		}
		return
	}
	outliveFileSizes()
	os.Exit(conclude(newRoot().Execute()))
}

// outliveFileSizes has a write beyond the limit of file sizes fail, where guise would be killed
// (SIGXFSZ). What guise becomes has the signal as it was.
func outliveFileSizes() {
	if !signal.Ignored(unix.SIGXFSZ) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGXFSZ)
	}
}

// complain prints an error, which may name what others have named.
func complain(err error) { fmt.Fprintf(os.Stderr, "guise: %s\n", plain.Lines(err.Error())) }

// conclude says what went wrong, and with which status to end. What cobra
// itself complains of is always the usage; see action.
func conclude(err error) int {
	if err == nil {
		return 0
	}
	f := failure{status: statusUsage, error: err}
	errors.As(err, &f)
	if f.error != nil {
		complain(err)
	}
	if errors.Is(err, unix.EFBIG) {
		complain(errors.New("the limit of file sizes is too low for what guise writes; raise it (ulimit -f unlimited)"))
	}
	return f.status
}

// action is a command's work: an error that does not say otherwise is
// guise's own failure.
func action(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		switch {
		case err == nil || errors.As(err, &failure{}):
			return err
		case errors.As(err, &access.Refusal{}), errors.As(err, &config.Mistake{}), errors.As(err, &holder.NoStackError{}),
			errors.As(err, &holder.RefusedError{}), errors.Is(err, holder.ErrNameTaken):
			return failure{statusUsage, err}
		}
		return failure{statusFailed, err}
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "guise",
		Short: "Gives any program its own Linux network stack",
		Long: "guise gives any program its own Linux network stack: the TCP/IP and Multipath TCP\n" +
			"of Linux as a library, in place of the host's, without touching the host's kernel.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Whatever guise was started for, it first cleans up after one that was killed.
		PersistentPreRun: func(*cobra.Command, []string) { sweep() },
	}
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage("unknown command %q; %s", args[0], hint(root, args[0]))
	}
	root.Run = func(cmd *cobra.Command, _ []string) { cmd.Help() }
	cobra.AddTemplateFunc("versionText", versionText)
	root.SetVersionTemplate("{{versionText}}")
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRun(), newUp(), newLs(), newExec(), newUpgrade(), newDetach(), newCapture(), newCheckMPTCP(), newDown(), newProfiles(), newPath(), newSetup(), newDoctor(), newBench(), newUndo())
	fitHelp(root)
	return root
}

func sweep() {
	if err := hostnet.Sweep(); err != nil {
		complain(err)
	}
	holder.SweepSockets()
}

// explainFlag adds to an unknown flag's name the ones there are.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	// What is no command has no flags either.
	if args := cmd.Flags().Args(); cmd == cmd.Root() && len(args) > 0 {
		return usage("unknown command %q; %s", args[0], hint(cmd, args[0]))
	}
	if !errors.As(err, &unknown) {
		return usage("%w; see guise %s --help", err, cmd.Name())
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, "--"+f.Name)
		}
	})
	return usage("unknown flag %s; %s", flagName(unknown), suggest.Hint(flagName(unknown), flags))
}

func flagName(unknown *pflag.NotExistError) string {
	if shorts := unknown.GetSpecifiedShortnames(); shorts != "" {
		return "-" + unknown.GetSpecifiedName()
	}
	return "--" + unknown.GetSpecifiedName()
}
