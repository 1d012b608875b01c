// SPDX-License-Identifier: GPL-2.0-only

// Package holder starts guise-holder, the process that has a stack, and
// listens to what it reports (docs/plan.md).
package holder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
)

// The parts of guise that are in the same folder as the command line.
const (
	Program = "guise-holder"
	Preload = "libguise-preload.so"
	Kernel  = "guise-kernel"
)

const directoryVariable = "GUISE_LIBDIR"

// checkOwners refuses what another user could have put into $GUISE_LIBDIR.
func checkOwners(paths ...string) error {
	for _, path := range paths {
		if err := access.TrustedFile(path); err != nil {
			return fmt.Errorf("%s, which $GUISE_LIBDIR names, is not used: %w; expected what only you or root can write", path, err)
		}
	}
	return nil
}

// Directories returns the folders in which the other parts of guise are looked for:
// $GUISE_LIBDIR alone if it is set, otherwise the folder of this executable, and
// ../lib/guise from there.
func Directories() ([]string, error) {
	if dir := os.Getenv(directoryVariable); dir != "" {
		dir, err := filepath.Abs(dir)
		return []string{dir}, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the path of this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	beside := filepath.Dir(self)
	return []string{beside, filepath.Join(filepath.Dir(beside), "lib", "guise")}, nil
}

// Find returns the path of a part of guise: a file that may be read, or executed
// if it is a program.
func Find(part string) (string, error) {
	directories, err := Directories()
	if err != nil {
		return "", err
	}
	mode := uint32(unix.X_OK)
	if strings.HasPrefix(part, Kernel) || strings.HasSuffix(part, ".so") {
		mode = unix.R_OK
	}
	for _, dir := range directories {
		path := filepath.Join(dir, part)
		if unix.Access(path, mode) != nil {
			continue
		}
		if os.Getenv(directoryVariable) == "" {
			return path, nil
		}
		return path, checkOwners(dir, path)
	}
	return "", fmt.Errorf("%s is missing, for it is not in %s; build it (make), or name its folder in $GUISE_LIBDIR",
		part, strings.Join(directories, " or "))
}
