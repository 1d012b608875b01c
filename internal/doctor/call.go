// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"slices"

	"golang.org/x/sys/unix"
)

const ioUringSetup = 425 // on every processor

// Calls of networking, by number.
var callNames = map[int]string{
	unix.SYS_SOCKET: "socket", unix.SYS_CONNECT: "connect", unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept4",
	unix.SYS_BIND: "bind", unix.SYS_LISTEN: "listen", unix.SYS_SENDTO: "sendto", unix.SYS_RECVFROM: "recvfrom",
	unix.SYS_SENDMSG: "sendmsg", unix.SYS_RECVMSG: "recvmsg", unix.SYS_SENDMMSG: "sendmmsg", unix.SYS_RECVMMSG: "recvmmsg",
	ioUringSetup: "io_uring_setup",
}

// networkCalls returns the names of the calls that concern networking, each once.
func networkCalls(numbers []int) (names []string) {
	for _, n := range numbers {
		if name, ok := callNames[n]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
