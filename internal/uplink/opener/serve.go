// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet"
	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/share"
	"guise/internal/plain"
)

// server is the service of one user.
type server struct {
	uid     int
	allowed string // the file

	lock        sync.Mutex
	connections map[*stack]bool
	stacks      int       // those that have ports
	ports       int       // of these
	next        time.Time // of requests: see pace
	all         sync.WaitGroup

	reserving sync.Mutex // one at a time asks for ports
}

// stack is a connection.
type stack struct {
	*server
	conn *net.UnixConn

	host  *hostnet.Host // nil: it has no ports yet
	ports share.Ports

	lock   sync.Mutex // of what follows; the goroutine that hears of addresses uses it, too
	taps   map[string]*opened
	number int // of taps that were opened
}

type opened struct {
	*share.Tap
	wanted []netip.Addr // what the user asked for last
}

// RunServe is the whole process. args are the user's id, and the file that says what is allowed if it is not
// AllowedFile.
func RunServe(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("this command is guise's own (guise setup --uplink)")
	}
	uid, err := strconv.ParseUint(args[0], 10, 31)
	if err != nil || uid == 0 {
		return fmt.Errorf("%q is no user's id; expected one that is not root's", args[0])
	}
	if os.Geteuid() != 0 {
		return errors.New("the service that opens uplinks for a user runs as root (guise setup --uplink)")
	}
	s := &server{uid: int(uid), allowed: AllowedFile, connections: map[*stack]bool{}}
	if len(args) == 2 {
		s.allowed = args[1]
	}
	runtime.GOMAXPROCS(1)
	done := make(chan error)
	// Not on the first thread, which is locked: to change threads costs more than the work.
	go func() { done <- s.run() }()
	return <-done
}

// run is the service, from its start to its end.
func (s *server) run() error {
	unix.Umask(0o077)
	listener, inherited, err := listen(s.uid)
	if err != nil {
		return err
	}
	if err := confine(); err != nil {
		return err
	}
	s.sweep()
	events, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return fmt.Errorf("cannot listen for changes of the host's addresses: %w", err)
	}
	go s.hear(events)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		<-stop
		listener.Close()
	}()
	err = s.serve(listener, inherited)
	s.end()
	return err
}

// serve accepts until the listener is closed; one that systemd gave, until nobody has used it for a while.
func (s *server) serve(listener *net.UnixListener, inherited bool) error {
	for {
		if inherited {
			listener.SetDeadline(time.Now().Add(idleTime))
		}
		conn, err := listener.AcceptUnix()
		switch {
		case err == nil:
			s.accept(conn)
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if s.idle() {
				return nil
			}
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOBUFS),
			errors.Is(err, unix.ECONNABORTED):
			time.Sleep(100 * time.Millisecond)
		default:
			return fmt.Errorf("cannot accept a connection: %w", err)
		}
	}
}

func (s *server) idle() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.connections) == 0
}

func (s *server) accept(conn *net.UnixConn) {
	k := &stack{server: s, conn: conn, taps: map[string]*opened{}}
	if peer, err := peerOf(conn); err != nil || peer != s.uid {
		conn.Close()
		return
	}
	s.lock.Lock()
	full := len(s.connections) >= mostConnections
	if !full {
		s.connections[k] = true
		s.all.Add(1)
	}
	s.lock.Unlock()
	if full {
		conn.Close()
		return
	}
	go func() {
		defer s.all.Done()
		k.run()
	}()
}

func peerOf(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); errors.Join(e, err) != nil {
		return 0, errors.Join(e, err)
	}
	return int(peer.Uid), nil
}

// end ends all stacks, and undoes what was done for them.
func (s *server) end() {
	s.lock.Lock()
	for k := range s.connections {
		k.conn.Close()
	}
	s.lock.Unlock()
	s.all.Wait()
}

// base is the name of this user's journals.
func (s *server) base() string { return fmt.Sprintf("uplink_%d", s.uid) }

// sweep undoes what an earlier service of this user could not.
func (s *server) sweep() {
	if err := share.RemoveTaps("guise_" + s.base() + "_"); err != nil {
		s.say("%v", err)
	}
	l, err := journal.LockExisting(journal.Directory())
	if err != nil {
		return
	}
	all, _ := l.List()
	l.Unlock()
	for _, j := range all {
		if (j.ID() == s.base() || strings.HasPrefix(j.ID(), s.base()+"_")) && (j.Expired() || j.Abandoned()) {
			if err := hostnet.Undo(j.Path()); err != nil {
				s.say("%v", err)
			}
		}
	}
}

func (s *server) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "guise: uplinks of user %d: %s\n", s.uid, plain.Text(fmt.Sprintf(format, args...)))
}

// run answers requests until the connection ends.
func (k *stack) run() {
	defer k.end()
	k.conn.SetReadDeadline(time.Now().Add(firstTime))
	buffer := make([]byte, mostMessage+1)
	for {
		// Descriptors that come along are closed by the kernel: there is no room for them.
		n, err := k.conn.Read(buffer)
		if err != nil || n == 0 {
			return
		}
		k.pace()
		r, err := parse(buffer[:n])
		if r.seq == 0 {
			return
		}
		var answer string
		var file *os.File
		if err == nil {
			answer, file, err = k.do(r)
		}
		if err != nil {
			answer = fmt.Sprintf("%d no %s", r.seq, plain.Text(err.Error()))
		} else {
			answer = strings.TrimSpace(fmt.Sprintf("%d ok %s", r.seq, answer))
		}
		var rights []byte
		if file != nil {
			rights = unix.UnixRights(int(file.Fd()))
		}
		k.conn.SetWriteDeadline(time.Now().Add(answerTime))
		if _, _, err := k.conn.WriteMsgUnix([]byte(answer[:min(len(answer), mostMessage)]), rights, nil); err != nil {
			return
		}
		if k.host != nil {
			k.conn.SetReadDeadline(time.Time{})
		}
	}
}

// pace waits until it is the turn of one more request: each has a moment of its own, and some may be early.
func (s *server) pace() {
	const each = time.Second / perSecond
	s.lock.Lock()
	now := time.Now()
	if early := now.Add(-burst * each); s.next.Before(early) {
		s.next = early
	}
	s.next = s.next.Add(each)
	wait := s.next.Sub(now)
	s.lock.Unlock()
	time.Sleep(wait)
}

// do does what a request asks for.
func (k *stack) do(r request) (answer string, file *os.File, err error) {
	if r.verb == verbPorts {
		k.reserving.Lock()
		defer k.reserving.Unlock()
		if answer, err = k.reserve(r.ports); err != nil {
			time.Sleep(refusedPause)
		}
		return answer, nil, err
	}
	if k.host == nil {
		return "", nil, errors.New("expected a request for ports first")
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	if r.verb == verbOpen {
		return k.open(r.name)
	}
	o := k.taps[r.name]
	switch {
	case o == nil && r.verb == verbClose:
		return "", nil, nil
	case o == nil:
		return "", nil, fmt.Errorf("%s was not opened", r.name)
	case r.verb == verbClose:
		delete(k.taps, r.name)
		return "", nil, o.Close()
	}
	o.wanted = r.addresses
	return "", nil, o.refresh(r.name)
}

// reserve reserves ports of the host.
func (k *stack) reserve(want share.Ports) (string, error) {
	if k.host != nil {
		return "", errors.New("the stack has its ports already")
	}
	// The places are taken before it is known how many ports there will be.
	s := k.server
	s.lock.Lock()
	count := want.Count()
	if count == 0 {
		count = share.DefaultPorts
	}
	switch {
	case s.stacks >= mostStacks:
		s.lock.Unlock()
		return "", fmt.Errorf("user %d has %d stacks with uplinks already, as many as one may have", s.uid, mostStacks)
	case s.ports+count > mostPorts:
		left := mostPorts - s.ports
		s.lock.Unlock()
		return "", fmt.Errorf("the stacks of user %d have %d of the %d ports that they may have together, which leaves %d; a smaller "+
			"range may do (ports=FIRST-LAST)", s.uid, mostPorts-left, mostPorts, left)
	}
	s.stacks++
	s.ports += count
	s.lock.Unlock()
	host, ports, err := hostnet.ReservePorts(s.base(), want.String())
	s.lock.Lock()
	defer s.lock.Unlock()
	if err != nil {
		s.stacks--
		s.ports -= count
		return "", err
	}
	s.ports += ports.Count() - count
	k.host, k.ports = host, ports
	return ports.String(), nil
}

// open opens an uplink, in place of an earlier one.
func (k *stack) open(name string) (string, *os.File, error) {
	all, err := ReadAllowed(k.allowed)
	if err != nil {
		return "", nil, err
	}
	if !slices.Contains(Of(all, k.uid), name) {
		return "", nil, fmt.Errorf("user %d may not use %s; sudo guise setup --user %d --uplink %s allows it", k.uid, name, k.uid, name)
	}
	if old := k.taps[name]; old != nil {
		delete(k.taps, name)
		if err := old.Close(); err != nil {
			k.say("%v", err)
		}
	}
	if len(k.taps) >= mostTaps {
		return "", nil, fmt.Errorf("a stack has at most %d uplinks", mostTaps)
	}
	k.number++
	table := fmt.Sprintf("%s_t%d_%s", k.host.TableName(), k.number, name)
	t, err := share.OpenTap(name, k.ports, table)
	if err != nil {
		return "", nil, err
	}
	k.taps[name] = &opened{Tap: t}
	mac := ""
	if t.MAC != nil {
		mac = " " + t.MAC.String()
	}
	return t.Kind + mac, t.File, nil
}

// refresh gives the tap those of the wanted addresses that the host has on the interface.
func (o *opened) refresh(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return o.SetAddresses(nil)
	}
	if err != nil {
		return err
	}
	list, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("cannot list the addresses of %s: %w", name, err)
	}
	var have []netip.Addr
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok && slices.Contains(o.wanted, addr.Unmap()) {
			have = append(have, addr.Unmap())
		}
	}
	return o.SetAddresses(have)
}

// hear looks anew at the addresses of all uplinks when some change on the host.
func (s *server) hear(events *nl.NetlinkSocket) {
	for {
		_, _, err := events.Receive()
		switch {
		case err == nil, errors.Is(err, unix.ENOBUFS): // some are lost: all is looked at in any case
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		default:
			s.say("cannot hear of changes of the host's addresses: %v", err)
			os.Exit(1) // a stack must not keep an address that the host has lost
		}
		s.lock.Lock()
		var all []*stack
		for k := range s.connections {
			all = append(all, k)
		}
		s.lock.Unlock()
		for _, k := range all {
			k.lock.Lock()
			for name, o := range k.taps {
				if err := o.refresh(name); err != nil {
					s.say("%s: %v", name, err)
				}
			}
			k.lock.Unlock()
		}
	}
}

// end undoes all that was done for the stack.
func (k *stack) end() {
	k.conn.Close()
	k.lock.Lock()
	defer k.lock.Unlock()
	for name, o := range k.taps {
		if err := o.Close(); err != nil {
			k.say("%s: %v", name, err)
		}
		delete(k.taps, name)
	}
	if k.host != nil {
		if err := k.host.Undo(); err != nil {
			k.say("%v", err)
		}
	}
	s := k.server
	s.lock.Lock()
	defer s.lock.Unlock()
	if k.host != nil {
		s.stacks--
		s.ports -= k.ports.Count()
	}
	delete(s.connections, k)
}
