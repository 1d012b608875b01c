// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// catchSignals returns a channel that gets the signals that ask guise to end, except
// those that were ignored when guise was started (nohup).
func catchSignals(signals ...os.Signal) chan os.Signal {
	caught := make(chan os.Signal, 16)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	return caught
}

// supervise starts a program, passes on to it what signals guise gets, and
// returns its exit status: 128+n when signal n killed it.
//
// The program stays in guise's process group. So the terminal's Ctrl-C and
// Ctrl-\ reach it without guise, Ctrl-Z stops both, and `fg` continues both;
// guise passes INT and QUIT on only when they are not the terminal's.
func supervise(path string, argv, env []string) (int, error) {
	signals := catchSignals(unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)

	attr := &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// kill -9 of guise is kill -9 of the program, as it is without -v.
		Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL},
	}
	process, err := os.StartProcess(path, argv, attr)
	if errors.Is(err, unix.ENOEXEC) {
		path, argv = shellFor(path, argv)
		process, err = os.StartProcess(path, argv, attr)
	}
	if err != nil {
		return 0, execFailure(argv[0], errors.Unwrap(err))
	}

	done := make(chan struct{})
	var passing sync.WaitGroup
	passing.Add(1)
	go func() {
		defer passing.Done()
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
					continue
				}
				process.Signal(s)
			}
		}
	}()
	state, err := process.Wait()
	close(done)
	passing.Wait()
	if err != nil {
		return 0, err
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// inForeground says whether guise belongs to the process group that the
// terminal sends its signals to.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
