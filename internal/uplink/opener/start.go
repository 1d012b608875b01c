// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen returns the socket: that which systemd gave (sd_listen_fds(3)), or one of its own.
func listen(uid int) (l *net.UnixListener, inherited bool, err error) {
	const first = 3
	if os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) && os.Getenv("LISTEN_FDS") == "1" {
		unix.CloseOnExec(first)
		l, err = listener(first)
		return l, true, err
	}
	if err := os.Mkdir(Folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, false, fmt.Errorf("cannot make the folder of sockets: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(Folder, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != 0 || st.Mode&0o022 != 0 {
		return nil, false, fmt.Errorf("%s must be root's folder, in which nobody else writes; remove it", Folder)
	}
	os.Chmod(Folder, 0o755) // whatever the umask is
	path := Socket(uid)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, false, os.NewSyscallError("socket", err)
	}
	address := &unix.SockaddrUnix{Name: path}
	if err := unix.Connect(fd, address); err == nil {
		unix.Close(fd)
		return nil, false, fmt.Errorf("a service listens on %s already", path)
	}
	os.Remove(path) // of one that was killed
	// Nobody may connect before it is the user's: the umask says so.
	if err = unix.Bind(fd, address); err == nil {
		err = os.Lchown(path, uid, -1)
	}
	if err == nil {
		err = unix.Listen(fd, mostConnections)
	}
	if err != nil {
		unix.Close(fd)
		return nil, false, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	l, err = listener(fd)
	return l, false, err
}

// listener refuses what is no socket of the right kind.
func listener(fd int) (*net.UnixListener, error) {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("descriptor %d is no SOCK_SEQPACKET socket that listens", fd)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no socket that listens: %w", fd, err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("descriptor %d is no Unix socket", fd)
	}
	return u, nil
}

// kept are the capabilities that opening taps takes.
var kept = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_BPF}

// confine gives up all other rights than those. The user's id stays root's: the list of reserved ports and
// the journals are root's files, and the user must not be able to signal or limit the process.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("PR_SET_DUMPABLE", err)
	}
	// On all threads: Go has several by now.
	every := func(number uintptr, args ...uintptr) error {
		args = append(args, 0, 0, 0, 0)
		if _, _, e := syscall.AllThreadsSyscall6(number, args[0], args[1], args[2], args[3], 0, 0); e != 0 {
			return e
		}
		return nil
	}
	if err := every(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return os.NewSyscallError("PR_SET_NO_NEW_PRIVS", err)
	}
	var mask uint64
	for _, c := range kept {
		mask |= 1 << c
	}
	for c := uintptr(0); c < 64; c++ {
		if mask&(1<<c) != 0 {
			continue
		}
		// Without CAP_SETPCAP the unit has dropped them; the others end with EINVAL.
		if err := every(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return os.NewSyscallError("PR_CAPBSET_DROP", err)
		}
	}
	every(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
	return setCapabilities(every, mask)
}
