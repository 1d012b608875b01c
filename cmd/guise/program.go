// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// findProgram finds the program that a shell would start by that name.
func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	search, set := os.LookupEnv("PATH")
	if !set {
		search = "/bin:/usr/bin"
	}
	var found error
	for _, dir := range filepath.SplitList(search) {
		path := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			path = "./" + name
		}
		err := executable(path)
		if err == nil {
			return path, nil
		}
		// A file that may not be executed is worth more words than none.
		if f := (failure{}); errors.As(err, &f) && f.status == statusNotExecutable {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", failure{statusNotFound, fmt.Errorf("%s: no such program in $PATH", name)}
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return failure{statusNotFound, fmt.Errorf("%s: no such file", path)}
	case err != nil:
		return failure{statusNotExecutable, err}
	case info.IsDir():
		return failure{statusNotExecutable, fmt.Errorf("%s: is a directory", path)}
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return failure{statusNotExecutable, fmt.Errorf("%s: %w", path, err)}
	}
	return nil
}

// execute becomes the program. It returns only when that fails.
func execute(path string, argv, env []string) error {
	err := syscall.Exec(path, argv, env)
	if err == unix.ENOEXEC {
		// A script without #!, which execvp(3) gives to the shell.
		path, argv = shellFor(path, argv)
		err = syscall.Exec(path, argv, env)
	}
	return execFailure(argv[0], err)
}

func shellFor(path string, argv []string) (string, []string) {
	return "/bin/sh", append([]string{"sh", path}, argv[1:]...)
}

func execFailure(name string, err error) error {
	status := statusNotExecutable
	if errors.Is(err, fs.ErrNotExist) {
		status = statusNotFound // of the file, or of the interpreter it names
	}
	return failure{status, fmt.Errorf("cannot execute %s: %w", name, err)}
}

// whyNotPreloaded says in a sentence why a program would not load libguise-preload.so, and so
// would be on the host's stack without notice; "" for a program that loads it.
func whyNotPreloaded(path string) string {
	loaded := loadedFor(path)
	if gainsPrivileges(loaded) && (loaded != path || !needsNoPrivileges(path)) {
		return loaded + " gains privileges when it starts (setuid, or file capabilities), and the loader ignores $LD_PRELOAD then, " +
			"unless root starts it (sudo)"
	}
	if reason := unpreloadable(loaded); reason != "" {
		return loaded + " " + reason
	}
	return ""
}

// loadedFor is the program that is loaded for path: itself, or what runs the script.
func loadedFor(path string) string {
	for range 4 { // as deep as the kernel follows #!
		interpreter, ok := interpreterOf(path)
		if !ok {
			break
		}
		path = interpreter
	}
	return path
}

// interpreterOf is what a script names after #!.
func interpreterOf(path string) (string, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer file.Close()
	first, _ := bufio.NewReaderSize(file, 256).ReadSlice('\n')
	line, ok := bytes.CutPrefix(first, []byte("#!"))
	words := bytes.Fields(line)
	if !ok || len(words) == 0 {
		return "", false
	}
	return string(words[0]), true
}

// gainsPrivileges says whether the loader ignores $LD_PRELOAD for that program.
func gainsPrivileges(path string) bool {
	var st unix.Stat_t
	if os.Geteuid() == 0 || unix.Stat(path, &st) != nil {
		return false
	}
	_, err := unix.Getxattr(path, "security.capability", nil)
	return st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 && int(st.Uid) != os.Geteuid() || err == nil
}

// forNetwork are the capabilities that mean nothing on a stack, where all have them: those of
// preload/process/capabilities.c.
const forNetwork = 1<<unix.CAP_NET_RAW | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_NET_BROADCAST

// needsNoPrivileges says whether all that a program gains are capabilities of the network, as
// ping does: on a stack it has them without.
func needsNoPrivileges(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return false
	}
	// struct vfs_cap_data of <linux/capability.h>: a version, then permitted and inheritable in
	// two halves.
	var data [64]byte
	n, err := unix.Getxattr(path, "security.capability", data[:])
	if err != nil || n < 20 {
		return false
	}
	permitted := uint64(binary.LittleEndian.Uint32(data[12:]))<<32 | uint64(binary.LittleEndian.Uint32(data[4:]))
	if permitted&^forNetwork != 0 {
		return false
	}
	_, err = loaderOf(path)
	return err == nil
}

// withoutPrivileges is what to execute so that a program gains none: the loader, which has none
// itself, and so loads what it is told.
func withoutPrivileges(program string, command []string) (path string, argv []string, err error) {
	if path, err = loaderOf(program); err != nil {
		return "", nil, err
	}
	absolute, err := filepath.Abs(program)
	return path, append([]string{command[0], absolute}, command[1:]...), err
}

// asMember is what to execute so that a program that can be preloaded is.
func asMember(program string, command []string) (path string, argv []string) {
	if gainsPrivileges(program) && needsNoPrivileges(program) {
		if path, argv, err := withoutPrivileges(program, command); err == nil {
			return path, argv
		}
	}
	return program, command
}

// loaderOf is the program that loads a dynamically linked one.
func loaderOf(path string) (string, error) {
	program, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer program.Close()
	for _, header := range program.Progs {
		if header.Type == elf.PT_INTERP {
			text, err := io.ReadAll(header.Open())
			return strings.TrimRight(string(text), "\x00"), err
		}
	}
	return "", fmt.Errorf("%s is statically linked", path)
}

func unpreloadable(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return "" // unreadable, or no ELF file: exec will tell
	}
	defer program.Close()
	if self, err := elf.Open("/proc/self/exe"); err == nil {
		defer self.Close()
		if self.Class != program.Class || self.Machine != program.Machine {
			return fmt.Sprintf("is for %v (%v), and guise is for %v", program.Machine, program.Class, self.Machine)
		}
	}
	libraries, _ := program.ImportedLibraries()
	if program.Section(".go.buildinfo") != nil && (len(libraries) == 0 || !rawCallsAreSeen()) {
		return "is written in Go, which makes its system calls without the C library"
	}
	for _, header := range program.Progs {
		if header.Type == elf.PT_INTERP {
			return ""
		}
	}
	if isLoader(path) {
		return ""
	}
	return "is statically linked"
}

// isLoader says whether a program is what loads dynamically linked ones: it needs no other.
func isLoader(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "ld-linux-") || name == "ld.so"
}

// rawCallsAreSeen says whether the preload library can see system calls that a program makes
// without the C library (preload/raw/trap.c): switching off what is off works where it exists.
func rawCallsAreSeen() bool {
	const setSyscallUserDispatch, off = 59, 0
	return runtime.GOARCH == "amd64" && unix.Prctl(setSyscallUserDispatch, off, 0, 0, 0) == nil
}
