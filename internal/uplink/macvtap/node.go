// SPDX-License-Identifier: GPL-2.0-only

package macvtap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
)

// mounted is where a thread mounts its file systems. Each system has this folder.
const mounted = "/sys"

// mountSysfs gives the calling thread, which must end afterwards, a mount namespace of its own
// whose sysfs shows the thread's network namespace.
func mountSysfs() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	// EBUSY: the very one is mounted there already, as by ip netns exec.
	if err := unix.Mount("sysfs", mounted, "sysfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil && err != unix.EBUSY {
		return fmt.Errorf("cannot mount a sysfs: %w", err)
	}
	return nil
}

// openNode opens the character device of a macvtap or ipvtap of the thread's network namespace, as
// a tap with the virtio-net header. The thread must end afterwards.
func openNode(name string, index int) (*os.File, error) {
	if err := mountSysfs(); err != nil {
		return nil, err
	}
	path := fmt.Sprintf("%s/class/net/%s/tap%d/dev", mounted, name, index)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the number of the character device: %w", err)
	}
	number, err := parseNumber(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=4k,mode=0700"); err != nil {
		return nil, fmt.Errorf("cannot mount a tmpfs: %w", err)
	}
	node := filepath.Join(mounted, "tap")
	if err := unix.Mknod(node, unix.S_IFCHR|0o600, int(number)); err != nil {
		return nil, access.Refuse("cannot make a node for the character device %d:%d: %w; in a container that takes CAP_MKNOD of the host",
			unix.Major(number), unix.Minor(number), err)
	}
	fd, err := unix.Open(node, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		hint := ""
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			hint = fmt.Sprintf("; in a container its devices must include this one (--device-cgroup-rule 'c %d:* rmw')", unix.Major(number))
		}
		return nil, access.Refuse("cannot open the character device %d:%d: %w%s", unix.Major(number), unix.Minor(number), err, hint)
	}
	request, _ := unix.NewIfreq(name)
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("the host's kernel refuses the virtio-net header: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// parseNumber reads "major:minor".
func parseNumber(text string) (uint64, error) {
	major, minor, _ := strings.Cut(strings.TrimSpace(text), ":")
	high, err := strconv.ParseUint(major, 10, 12)
	low, err2 := strconv.ParseUint(minor, 10, 20)
	if err = errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("expected the number of a device: %w", err)
	}
	return unix.Mkdev(uint32(high), uint32(low)), nil
}
