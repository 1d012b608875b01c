// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet"
	"guise/internal/hostnet/access"
	"guise/internal/plan"
	"guise/internal/uplink/opener"
)

// uplinks finds whether interfaces of the host can be paths of a stack. A run without flags does not need
// that, so nothing here is bad. What takes rights is tried only by who has them, and nothing is changed.
func (e *examination) uplinks() {
	const use = "sudo guise run --mptcp --uplink IFNAME --uplink IFNAME"
	if err := hostnet.MayUplink([]*plan.Uplink{{Way: plan.Share}}); err != nil {
		e.uplinksByRoot(use)
		return
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		e.find("uplinks", Note, "modprobe af_packet, or a kernel with CONFIG_PACKET", "the host has no packet sockets (%v), so there can be no --uplink", err)
		return
	}
	unix.Close(fd)
	if !hasNetdev() {
		e.find("uplinks", Note, "modprobe nf_tables, or a kernel with CONFIG_NF_TABLES_NETDEV; --uplink IFNAME,own does without",
			"the host's kernel has no nftables at the ingress of interfaces, which hides a stack's packets from the host: its address cannot be shared")
		return
	}
	var limits []string
	if !atLeast(5, 12) {
		limits = append(limits, "tables have no owner before Linux 5.12, so what hides a stack's packets outlives a holder that is killed, until the next guise command")
	}
	if !access.Capability(unix.CAP_SYS_ADMIN) || !access.Capability(unix.CAP_MKNOD) {
		limits = append(limits, "a path with an address of its own takes CAP_SYS_ADMIN and CAP_MKNOD as well")
	} else if err := knowsMacvtap(); err != nil {
		limits = append(limits, fmt.Sprintf("the host has neither macvtap nor ipvtap (%v), so a path cannot have an address of its own", err))
	}
	if len(limits) > 0 {
		e.find("uplinks", Note, use, "interfaces of the host can be paths of a stack, but %s", strings.Join(limits, "; "))
		return
	}
	e.find("uplinks", OK, "", "interfaces of the host can be paths of a stack, with the host's addresses or with their own")
}

// uplinksByRoot finds what root has set up for a user who has no rights for uplinks.
func (e *examination) uplinksByRoot(use string) {
	uid := os.Geteuid()
	allowed, err := opener.ReadAllowed(opener.AllowedFile)
	names := opener.Of(allowed, uid)
	switch {
	case err != nil:
		e.find("uplinks", Note, "sudo guise setup --uplink IFNAME", "%v", err)
		return
	case len(names) == 0:
		e.find("uplinks", Note, "sudo guise setup --uplink IFNAME, once; or "+use, "user %d has no CAP_NET_ADMIN or no CAP_NET_RAW, and may not make "+
			"interfaces of the host paths of a stack (--uplink)", uid)
		return
	}
	if _, err := os.Stat(opener.Socket(uid)); err != nil {
		e.find("uplinks", Note, fmt.Sprintf("sudo systemctl start guise-uplink-%d.socket, or sudo guise setup --uplink %s again", uid, names[0]),
			"root has set up %s for you, but the service that opens them does not run: %v", listed(names), err)
		return
	}
	e.find("uplinks", OK, "", "%s can be paths of a stack, with the host's addresses (guise setup --uplink)", listed(names))
}

// listed has names as a sentence does.
func listed(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// hasNetdev asks for the tables of that family.
func hasNetdev() bool {
	c, err := nftables.New()
	if err != nil {
		return false
	}
	_, err = c.ListTablesOfFamily(nftables.TableFamilyNetdev)
	return err == nil
}

// knowsMacvtap looks for the number that the character devices of both kinds of taps have.
func knowsMacvtap() error {
	text, err := os.ReadFile("/proc/devices")
	if err != nil {
		return err
	}
	if strings.Contains(string(text), " macvtap\n") || strings.Contains(string(text), " ipvtap\n") {
		return nil
	}
	// A module is loaded when the first device is made.
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	release := unix.ByteSliceToString(name.Release[:])
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text, _ := os.ReadFile("/lib/modules/" + release + "/" + list)
		if strings.Contains(string(text), "/macvtap.ko") || strings.Contains(string(text), "/ipvtap.ko") {
			return nil
		}
	}
	return errors.New("no such module")
}

// atLeast reports whether the host's kernel is of that version or newer.
func atLeast(major, minor int) bool {
	var name unix.Utsname
	var a, b int
	if err := unix.Uname(&name); err != nil {
		return false
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
