// SPDX-License-Identifier: GPL-2.0-only

package sysctl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"guise/internal/hostnet/journal"
)

func TestSysctlThatSomebodyElseHasSetSinceStays(t *testing.T) {
	root := t.TempDir()
	s := Directory(root)
	if err := errors.Join(os.Mkdir(filepath.Join(root, "net"), 0o755), os.WriteFile(filepath.Join(root, "net/x"), []byte("7\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(journal.Step{Key: "net/x", Set: "1", Old: "0"}); err != nil {
		t.Error(err)
	}
	if got, _ := s.Read("net/x"); got != "7" {
		t.Errorf("got %q", got)
	}
	if err := s.Restore(journal.Step{Key: "net/gone", Set: "1", Old: "0"}); err != nil {
		t.Error(err)
	}
}
