// SPDX-License-Identifier: GPL-2.0-only

// Package sysctl reads and writes sysctls, and restores their old values.
package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
)

// Directory is a folder of sysctls: /proc/sys, or one that a test made. Keys are
// paths below it, because the name of an interface may have dots in it.
type Directory string

// Host is the host's folder of sysctls.
const Host Directory = "/proc/sys"

// Read returns the value, without the end of the line.
func (s Directory) Read(key string) (string, error) {
	text, err := os.ReadFile(filepath.Join(string(s), key))
	return strings.TrimSpace(string(text)), err
}

// Has reports whether there is such a sysctl.
func (s Directory) Has(key string) bool {
	_, err := s.Read(key)
	return err == nil
}

// Write sets a sysctl.
func (s Directory) Write(key, value string) error {
	// With the end of the line: an empty value would not be written at all.
	err := os.WriteFile(filepath.Join(string(s), key), []byte(value+"\n"), 0)
	if errors.Is(err, unix.EROFS) {
		return access.Refuse("%s is read-only here, and a stack behind a tap needs %s=%s; set it from outside "+
			"(docker run --sysctl ...), or use --link none: %w", s, strings.ReplaceAll(key, "/", "."), value, err)
	}
	if err != nil {
		return fmt.Errorf("cannot set %s to %s: %w", key, value, err)
	}
	return nil
}

// Ensure writes a value unless the sysctl has it already: in many containers
// sysctls can be read, but not written.
func (s Directory) Ensure(key, value string) error {
	if now, err := s.Read(key); err == nil && now == value {
		return nil
	}
	return s.Write(key, value)
}

// Restore writes a sysctl's old value again. It does nothing if the sysctl is gone
// with its interface, or if another program has set it since.
func (s Directory) Restore(step journal.Step) error {
	now, err := s.Read(step.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now != step.Set {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.Write(step.Key, step.Old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has gone just now
	}
	return err
}
