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
)

// The parts of guise that are in the same folder as the command line.
const (
	Program = "guise-holder"
	Preload = "libguise-preload.so"
	Kernel  = "guise-kernel"
)

// Directories returns the folders in which the other parts of guise are looked for:
// $GUISE_LIBDIR alone if it is set, otherwise the folder of this executable, and
// ../lib/guise from there.
func Directories() ([]string, error) {
	if dir := os.Getenv("GUISE_LIBDIR"); dir != "" {
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
	access := uint32(unix.X_OK)
	if part == Kernel || strings.HasSuffix(part, ".so") {
		access = unix.R_OK
	}
	for _, dir := range directories {
		path := filepath.Join(dir, part)
		if unix.Access(path, access) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing, for it is not in %s; build it (make), or name its folder in $GUISE_LIBDIR",
		part, strings.Join(directories, " or "))
}
