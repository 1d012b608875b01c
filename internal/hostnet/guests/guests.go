// SPDX-License-Identifier: GPL-2.0-only

// Package guests makes the namespace of guests.
//
// Guests are in a network namespace of their own (plan.Guests, holder/guests/guests.c). A process
// that guise starts makes it, with a user namespace if this user may not make one without. That
// process sets the namespace up, passes on the descriptors that are needed, and ends. The
// namespace lasts while there are copies of these descriptors, or guests.
//
// The user namespace maps only the user and the user's group, each to itself: the program has the
// same user id in it, and a setuid program gains no privileges.
package guests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/sysctl"
	"guise/internal/hostnet/tap"
	"guise/internal/plan"
)

// Make is the first argument of guise when it has to set up a namespace of guests.
const Make = "make-guests"

// deviceName is the name of the tun in the guests' namespace.
const deviceName = "eth0"

const queue = 2000 // packets

// patience is how long the namespace may take until it is ready; it takes some 20 ms.
const patience = 20 * time.Second

// Namespace is the guests' namespace.
type Namespace struct {
	Tun  *os.File // for the holder
	Net  *os.File
	User *os.File // nil: none was made
}

// Propose chooses the addresses of guests on a stack with these links, which have
// their addresses already. It changes nothing on the host.
func Propose(links []*plan.Link) (*plan.Guests, error) {
	s, err := survey.Host()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		for _, a := range l.Addresses {
			s.Taken = append(s.Taken, a.Masked())
		}
	}
	four, err := s.Taken.Free4()
	if err != nil {
		return nil, err
	}
	six, err := s.Taken.Free6()
	if err != nil {
		return nil, err
	}
	g := &plan.Guests{}
	for _, p := range []survey.Pair{four, six} {
		g.Stack = append(g.Stack, p.Host)
		g.Addresses = append(g.Addresses, p.Stack)
	}
	g.FindWays(links)
	return g, nil
}

// Open makes the namespace of guests.
func Open(g *plan.Guests) (*Namespace, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the path of this program: %w", err)
	}
	wishes, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	ours, its := os.NewFile(uintptr(fds[0]), "namespace"), os.NewFile(uintptr(fds[1]), "namespace")
	defer ours.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, Make, string(wishes))
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{its}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	user := !access.Capability(unix.CAP_SYS_ADMIN) || !access.Capability(unix.CAP_NET_ADMIN)
	if user {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	err = cmd.Start()
	its.Close()
	if err != nil && user {
		return nil, access.Refuse("a program that cannot be preloaded runs in a user namespace of its own, and this machine does not let "+
			"you make one (%w): its administrator may allow it (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "+
			"kernel.apparmor_restrict_unprivileged_userns), or use sudo", errors.Unwrap(err))
	}
	if err != nil {
		return nil, access.Refuse("cannot make a network namespace for the program: %w", err)
	}
	n, err := receive(fds[0], user)
	cmd.Wait()
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("the namespace of the program was not ready within %v", patience)
	}
	return n, err
}

// receive reads the answer of the process in the namespace: descriptors, or the
// reason of a failure.
func receive(socket int, user bool) (*Namespace, error) {
	text, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(3*4))
	n, length, _, _, err := unix.Recvmsg(socket, text, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("no word from the namespace of the program: %w", err)
	}
	var fds []int
	if messages, err := unix.ParseSocketControlMessage(control[:length]); err == nil && len(messages) == 1 {
		fds, _ = unix.ParseUnixRights(&messages[0])
	}
	if len(fds) != 3 {
		hint := ""
		if user {
			hint = "; in a user namespace this may be what the machine's administrator wants (kernel.apparmor_restrict_unprivileged_userns)"
		}
		return nil, access.Refuse("the namespace of the program cannot be set up: %s%s", strings.TrimSpace(string(text[:n])), hint)
	}
	files := make([]*os.File, 0, len(fds))
	for i, name := range []string{"tun", "net", "user"} {
		files = append(files, os.NewFile(uintptr(fds[i]), name))
	}
	result := &Namespace{Tun: files[0], Net: files[1], User: files[2]}
	if !user {
		result.User.Close()
		result.User = nil
	}
	return result, nil
}

// Enter returns a namespace of guests that exists already. net is its descriptor,
// by which the user namespace is found that it belongs to.
func Enter(net *os.File) (*Namespace, error) {
	fd, err := unix.IoctlRetInt(int(net.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, access.Refuse("the namespace of the stack's programs that cannot be preloaded belongs to another user (%w), "+
			"and only that user may run programs there", err)
	}
	n := &Namespace{Net: net, User: os.NewFile(uintptr(fd), "user")}
	var its, ours unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &its), unix.Stat("/proc/self/ns/user", &ours)); err != nil {
		return nil, err
	}
	if its.Ino == ours.Ino {
		n.User.Close()
		n.User = nil
	}
	return n, nil
}

// RunMake runs in the process that makes a namespace of guests: args is the
// plan.Guests, descriptor 3 the socket to guise.
func RunMake(args []string) error {
	const socket = 3
	fds := []int(nil)
	err := func() error {
		if len(args) != 1 {
			return errors.New("this command is guise's own")
		}
		var g plan.Guests
		if err := json.Unmarshal([]byte(args[0]), &g); err != nil {
			return err
		}
		files, err := setUp(&g)
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		return err
	}()
	if err != nil {
		return unix.Sendmsg(socket, []byte(err.Error()), nil, nil, 0)
	}
	return unix.Sendmsg(socket, []byte("made"), unix.UnixRights(fds...), nil, 0)
}

// setUp makes and configures the tun, and returns it with both namespaces.
func setUp(g *plan.Guests) (files []*os.File, err error) {
	tun, err := tap.Open(plan.Tun, deviceName)
	if err != nil {
		return nil, err
	}
	if _, err := tap.BringUp("lo"); err != nil {
		return nil, err
	}
	device, err := netlink.LinkByName(deviceName)
	if err != nil {
		return nil, err
	}
	// Only this queue slows a sender of datagrams down.
	if err := netlink.LinkSetTxQLen(device, queue); err != nil {
		return nil, fmt.Errorf("cannot give %s a queue of %d: %w", deviceName, queue, err)
	}
	if err := netlink.LinkSetMTU(device, g.MTU); err != nil {
		return nil, fmt.Errorf("cannot give %s an MTU of %d: %w", deviceName, g.MTU, err)
	}
	// No link-local address: the kernel would send packets of its own for it.
	sysctl.Host.Write("net/ipv6/conf/"+deviceName+"/addr_gen_mode", "1")
	// As on a stack, every program may bind every port, and ping.
	sysctl.Host.Write("net/ipv4/ip_unprivileged_port_start", "0")
	sysctl.Host.Write("net/ipv4/ping_group_range", fmt.Sprintf("%d %d", os.Getegid(), os.Getegid()))
	for _, s := range g.Sysctls {
		if err := sysctl.Host.Write(strings.ReplaceAll(s.Key, ".", "/"), s.Value); err != nil {
			return nil, err
		}
	}
	six := sysctl.Host.Has("net/ipv6/conf/" + deviceName + "/disable_ipv6")
	for _, a := range g.Addresses {
		if a.Addr().Is6() && !six {
			continue // a host without IPv6
		}
		if err := tap.AddAddress(device, a); err != nil {
			return nil, err
		}
	}
	if _, err := tap.BringUp(deviceName); err != nil {
		return nil, err
	}
	for _, r := range g.Routes {
		if r.Addr().Is6() && !six {
			continue
		}
		if err := addRoute(device, r); err != nil {
			return nil, err
		}
	}
	net, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	user, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return nil, err
	}
	return []*os.File{tun, net, user}, nil
}

func addRoute(device netlink.Link, to netip.Prefix) error {
	route := &netlink.Route{LinkIndex: device.Attrs().Index, Dst: tap.Net(to)}
	if to.Addr().Is4() {
		route.Scope = netlink.SCOPE_LINK
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("cannot lead %s to %s: %w", to, device.Attrs().Name, err)
	}
	return nil
}

// Try makes a namespace of guests as a run would, and closes it at once.
func Try() error {
	g, err := Propose(nil)
	if err != nil {
		return err
	}
	n, err := Open(g)
	if err != nil {
		return err
	}
	for _, file := range []*os.File{n.Tun, n.Net, n.User} {
		if file != nil {
			file.Close()
		}
	}
	return nil
}
