// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// use is a port that a socket of the host has.
type use struct {
	protocol string
	port     uint16
	inode    uint32 // 0: a connection that has ended and is remembered for a while
}

// used returns the ports of the list that sockets of the host have, in their order. Sockets on
// loopback addresses are left out: no packet of an interface is for them.
//
// Limit: the kernel does not list a TCP socket that is bound and neither listens nor is connected.
func used(p Ports) ([]use, error) {
	var all []use
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for protocol, list := range map[string]func(uint8) ([]*netlink.Socket, error){
			"tcp": netlink.SocketDiagTCP, "udp": netlink.SocketDiagUDP,
		} {
			sockets, err := list(family)
			if err != nil && family == unix.AF_INET6 {
				continue // a host without IPv6
			}
			if err != nil {
				return nil, fmt.Errorf("cannot ask which %s ports the host uses (sock_diag): %w", protocol, err)
			}
			for _, s := range sockets {
				if s.ID.SourcePort != 0 && p.Contains(s.ID.SourcePort) && !s.ID.Source.IsLoopback() {
					all = append(all, use{protocol, s.ID.SourcePort, s.INode})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(b.inode, a.inode), cmp.Compare(a.protocol, b.protocol))
	})
	return all, nil
}

// String names the port and the program.
func (u use) String() string {
	if u.inode == 0 {
		return fmt.Sprintf("port %d (%s) is of a connection of the host that has just ended, for a minute", u.port, u.protocol)
	}
	return fmt.Sprintf("port %d (%s) is in use by %s", u.port, u.protocol, program(u.inode))
}

// program names the program that has the socket, as far as this user may see it.
func program(inode uint32) string {
	name := fmt.Sprintf("socket:[%d]", inode)
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if target, err := os.Readlink(file); err != nil || target != name {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		if comm, err := os.ReadFile(process + "/comm"); err == nil {
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(comm)), filepath.Base(process))
		}
	}
	return "a program of the host"
}
