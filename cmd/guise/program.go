// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
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
	path = loadedFor(path)
	if reason := unpreloadable(path); reason != "" {
		return path + " " + reason
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

func unpreloadable(path string) string {
	if gainsPrivileges(path) {
		return "gains privileges when it starts (setuid, or file capabilities), and the loader ignores $LD_PRELOAD then, " +
			"unless root starts it (sudo)"
	}
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
