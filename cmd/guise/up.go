// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"guise/internal/config"
	"guise/internal/holder"
	"guise/internal/plan"
)

func newUp() *cobra.Command {
	var name string
	var printPlan bool
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Start a named stack from a config",
		Long: "Starts the stack that the file describes (TOML; guise-config(5)), and returns once it is there. It stays,\n" +
			"with programs or without, until guise down: guise run --stack NAME runs a program on it, guise exec NAME a tool.\n" +
			"FILE - is standard input.",
		Example: "  guise up web.toml\n  guise run --stack web -- nginx",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage("expected guise up FILE, the path of one config")
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			s, err := readConfig(args[0], name)
			if err != nil {
				return err
			}
			if printPlan {
				if err := s.propose(); err != nil {
					return err
				}
				s.findNames()
				_, err := fmt.Fprint(cmd.OutOrStdout(), s.Plan(holder.FirstLinkFD).Text())
				return err
			}
			socket, err := s.listen(s.Name)
			if err != nil {
				return err
			}
			return s.up(socket)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the stack, in place of that which the file says")
	cmd.Flags().BoolVar(&printPlan, "print-plan", false, "print the plan that guise-holder would get, and do nothing")
	return cmd
}

// readConfig is what a file says, checked; name takes the place of its own.
func readConfig(path, name string) (*settings, error) {
	file, err := config.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if err := plan.CheckName(name); err != nil {
			return nil, usage("--name: %w", err)
		}
		file.Name = name
	}
	if file.Name == "" {
		return nil, usage("the config has no name; expected name = \"web\", say, or --name NAME")
	}
	w, err := fromFile(file)
	if err != nil {
		return nil, err
	}
	s, err := w.settings("")
	if err != nil {
		return nil, err
	}
	s.id = fmt.Sprintf("%s_%d", s.Name, os.Getpid())
	if path != "-" {
		s.file, err = filepath.Abs(path)
	}
	s.nftablesAt = file.Where("nftables")
	s.SetUp = s.nftables != ""
	return s, err
}

// up builds a stack that stays, and answers at the socket.
func (s *settings) up(socket *holder.Socket) error {
	if s.nftables != "" {
		if _, err := findTool("nft"); err != nil {
			socket.Remove()
			return fmt.Errorf("%s takes the program nft: %w; install it (sudo apt-get install nftables)", s.nftablesAt, err)
		}
	}
	if s.file != "" {
		s.Control.Told[toldFile] = holder.Escape(s.file)
	}
	stop := catchSignals(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	h, err := s.prepare(socket, stop)
	if err != nil {
		return err
	}
	// Until it is told to stay, the stack goes with our ticket, whatever ends us.
	if err := s.filter(h, stop); err != nil {
		return errors.Join(err, abandon(h))
	}
	select {
	case caught := <-stop:
		return errors.Join(interrupted(caught), abandon(h))
	default:
	}
	if err := keep(socket.Path); err != nil {
		return errors.Join(err, abandon(h))
	}
	h.Ticket.Close()
	if s.throughPasst() && (s.CC != "" || s.MPTCP) {
		complain(errors.New("cc and mptcp end at passt, which speaks TCP of the host's own on the wire; `sudo guise setup`, once, " +
			"gives you a tap that carries the stack's there"))
	}
	return nil
}

func keep(path string) error {
	c, err := holder.Dial(path)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Keep()
}

// nftTime is how long nft may take for a ruleset.
const nftTime = 60 * time.Second

// filter has nft, joined to the stack, take the ruleset in.
func (s *settings) filter(h *holder.Holder, stop <-chan os.Signal) error {
	if s.nftables == "" {
		return nil
	}
	nft, err := findTool("nft")
	if err != nil {
		return err
	}
	preload, err := holder.Find(holder.Preload)
	if err != nil {
		return err
	}
	const ticket = 3
	env, err := holder.Environment(os.Environ(), preload, ticket, false)
	if err != nil {
		return err
	}
	var said strings.Builder
	cmd := exec.Command(nft, "-f", "-")
	cmd.Env, cmd.ExtraFiles = slices.Clone(env), []*os.File{h.Ticket}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.nftables), &said, &said
	// It has a ticket, and the stack would stay as long as it does.
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", nft, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case caught := <-stop:
		cmd.Process.Kill()
		<-done
		return interrupted(caught)
	case <-time.After(nftTime):
		cmd.Process.Kill()
		<-done
		return fmt.Errorf("%s: %s did not end within %v", s.nftablesAt, nft, nftTime)
	}
	if err != nil {
		return usage("%s: nft does not take it (%w): %s", s.nftablesAt, err, strings.TrimSpace(said.String()))
	}
	return nil
}
