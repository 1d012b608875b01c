// SPDX-License-Identifier: GPL-2.0-only

// Package passt starts a passt for a link of a stack.
package passt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// passt needs no privilege: it reads the packets in a stack's frames, and opens
// sockets of the host for the connections and datagrams in them.
//
// It inherits one end of a socket pair, and ends when the last copy of the other
// end is closed: with the stack, however the stack ends. When it is ready it goes
// into the background, in a session of its own. So it is not a child of the
// program, and Ctrl-C does not end it. Both sides get their addresses when they
// start, so that neither has to ask for them over the link.

// patience is how long passt may take until it is ready; it takes some 20 ms.
const patience = 20 * time.Second

// mostQueue is the size of the queue of each of the two sockets; the host's
// net.core.wmem_max may allow less. passt drops what it cannot write, and sends it
// again only after two seconds. So a connection must not be allowed to send more
// at a time than fits into the queue.
const mostQueue = 4 << 20

// Find returns the path of passt.
func Find() (string, error) {
	path, err := exec.LookPath("passt")
	if err == nil {
		return path, nil
	}
	return "", errors.New("without CAP_NET_ADMIN a stack goes out through passt, and there is none in $PATH; install it " +
		"(sudo apt-get install passt), or have root set up a tap for you once (sudo guise setup), " +
		"or use sudo, --link tap:IFNAME with a tap of your own, or --link none for a stack with lo only")
}

// Propose chooses the addresses of a link through passt: the same that a tap would
// get. The gateway is passt itself.
func Propose(s *survey.Survey, l *plan.Link) error {
	if len(l.Addresses) > 0 {
		given := map[bool]bool{} // by Is4
		for _, g := range l.Gateways {
			given[g.Is4()] = true
		}
		for _, a := range l.Addresses {
			host, err := survey.Opposite(a, l.Gateways)
			if err != nil {
				return err
			}
			if !given[a.Addr().Is4()] {
				given[a.Addr().Is4()] = true
				l.Gateways = append(l.Gateways, host.Addr())
			}
		}
		return nil
	}
	four, six, err := survey.DefaultRoutes()
	if err != nil {
		return err
	}
	if !four && !six {
		return errNoRoute
	}
	if four {
		subnet, err := s.Taken.Free4()
		if err != nil {
			return err
		}
		s.Join(l, subnet)
	}
	if six {
		subnet, err := s.Taken.Free6()
		if err != nil {
			return err
		}
		s.Join(l, subnet)
	}
	return nil
}

var errNoRoute = errors.New("this host has no default route, and passt, through which a stack goes out without root, " +
	"goes where that leads; connect the host, or use --link none for a stack with lo only")

func arguments(l *plan.Link) []string {
	argv := []string{"--quiet", "--fd", "3", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-map-gw"}
	for _, a := range l.Addresses {
		argv = append(argv, "--address", a.Addr().String())
		if a.Addr().Is4() {
			argv = append(argv, "--netmask", strconv.Itoa(a.Bits()))
		}
	}
	for _, g := range l.Gateways {
		argv = append(argv, "--gateway", g.String())
	}
	return argv
}

// giveQueues makes the queues of the sockets as large as allowed, and returns the size.
func giveQueues(fds [2]int) (int, error) {
	for _, end := range fds {
		unix.SetsockoptInt(end, unix.SOL_SOCKET, unix.SO_SNDBUF, mostQueue)
	}
	return unix.GetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_SNDBUF)
}

// Queue returns how large the queue of a socket to passt may be on this host, as
// net.core.wmem_max counts it: the kernel gives twice that.
func Queue() (int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	granted, err := giveQueues(fds)
	return granted / 2, err
}

// Start starts a passt for the link, and returns the stack's end of it.
func Start(l *plan.Link) (*os.File, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket pair for passt: %w", err)
	}
	ours, its := os.NewFile(uintptr(fds[0]), "passt"), os.NewFile(uintptr(fds[1]), "passt")
	defer its.Close()
	if queue, err := giveQueues(fds); err == nil {
		l.Window = queue / 8 * 5
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, arguments(l)...)
	cmd.ExtraFiles = []*os.File{its}
	cmd.Dir = "/"
	// passt reports failures here while it starts; in the background it has closed this.
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		ours.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s was not ready within %v%s", path, patience, quote(said.String()))
		}
		return nil, fmt.Errorf("%s does not start (%w)%s; guise doctor says what this machine allows", path, err, quote(said.String()))
	}
	return ours, nil
}

// quote returns what passt printed, without its complaints about the system's log.
func quote(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, "to syslog") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines, "; ")
}

// Try starts a passt as a run would, and ends it at once.
func Try() error {
	l := &plan.Link{Kind: plan.Passt}
	s, err := survey.Host()
	if err == nil {
		err = Propose(s, l)
	}
	if err != nil {
		return err
	}
	file, err := Start(l)
	if err != nil {
		return err
	}
	return file.Close()
}
