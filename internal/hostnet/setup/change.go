// SPDX-License-Identifier: GPL-2.0-only

package setup

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Setup makes all its changes to the host here, and prints each: "+" for what it
// makes, "-" for what it removes, "=" for what is as it should be, "$" for a
// command. With DryRun it only prints them.

func (s *Setup) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

// write writes a file, unless it has that text already. A failure leaves the old file.
func (s *Setup) write(path, text string, mode fs.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		s.say("= %s", path)
		return nil
	}
	s.say("+ %s", path)
	if s.DryRun {
		for line := range strings.Lines(text) {
			s.say("    %s", strings.TrimSuffix(line, "\n"))
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	draft := path + ".new"
	err := os.WriteFile(draft, []byte(text), mode)
	if err == nil {
		err = os.Chmod(draft, mode) // whatever the umask is
	}
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		os.Remove(draft)
	}
	return err
}

func (s *Setup) link(target, path string) error {
	if now, err := os.Readlink(path); err == nil && now == target {
		s.say("= %s", path)
		return nil
	}
	s.say("+ %s -> %s", path, target)
	if s.DryRun {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

func (s *Setup) remove(path string) error {
	if !exists(path) {
		return nil
	}
	s.say("- %s", path)
	if s.DryRun {
		return nil
	}
	return os.Remove(path)
}

func (s *Setup) command(argv ...string) error {
	s.say("$ %s", strings.Join(argv, " "))
	if s.DryRun {
		return nil
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("`%s` failed (%w): %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
