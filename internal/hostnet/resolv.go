// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const resolvConf = "/etc/resolv.conf"

// Resolvers are the name servers of the host's resolv.conf.
func Resolvers() []netip.Addr {
	file, err := os.Open(resolvConf)
	if err != nil {
		return nil
	}
	defer file.Close()
	var found []netip.Addr
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(words[1]); err == nil {
			found = append(found, addr.WithZone(""))
		}
	}
	return found
}

// CanUseResolvers says why UseResolvers would fail, before anything is done.
func CanUseResolvers() error {
	if !Capability(unix.CAP_SYS_ADMIN) {
		return refuse("--dns takes CAP_SYS_ADMIN, for a mount namespace with its own resolv.conf; use sudo, or leave --dns out")
	}
	if _, err := os.Stat(resolvConf); err != nil {
		return refuse("--dns replaces %s for the program, and that cannot be: %w", resolvConf, err)
	}
	return nil
}

// UseResolvers gives this thread, and what it starts, a resolv.conf with
// these name servers, as `ip netns exec` does: in a mount namespace of its
// own. The thread must be locked to its goroutine.
//
// The new file lies in a file system that has no place in any namespace once
// this returns: nothing is left to be removed.
func UseResolvers(servers []netip.Addr) error {
	target, err := filepath.EvalSymlinks(resolvConf)
	if err != nil {
		return err
	}
	scratch := "/tmp"
	if strings.HasPrefix(target, scratch+"/") {
		scratch = "/run"
	}
	text := "# written by guise run --dns\n"
	for _, s := range servers {
		text += "nameserver " + s.String() + "\n"
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("cannot keep mounts from the host: %w", err)
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, "size=64k,mode=755"); err != nil {
		return fmt.Errorf("cannot mount a file system for resolv.conf: %w", err)
	}
	source := filepath.Join(scratch, "resolv.conf")
	err = os.WriteFile(source, []byte(text), 0o644)
	if err == nil {
		err = os.Chmod(source, 0o644) // whatever the umask is: daemons drop their rights
	}
	if err == nil {
		err = unix.Mount(source, target, "", unix.MS_BIND, "")
	}
	if e := unix.Unmount(scratch, unix.MNT_DETACH); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot give the program its own %s: %w", resolvConf, err)
	}
	return nil
}
