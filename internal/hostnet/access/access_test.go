// SPDX-License-Identifier: GPL-2.0-only

package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileThatOthersThanRootCanChangeIsNotRootsOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: making files of root's and of others takes root")
	}
	if err := RootOnly("/proc/self/status"); err != nil && !strings.Contains(err.Error(), "/proc") {
		t.Error(err)
	}
	// In /run, not /tmp, where everybody may write.
	top, err := os.MkdirTemp("/run", "guise-test-")
	if err != nil {
		t.Skipf("skipped: no folder in /run: %v", err)
	}
	defer os.RemoveAll(top)
	folder, file := filepath.Join(top, "bin"), filepath.Join(top, "bin", "guise")
	make := func() error {
		return errors.Join(os.Chmod(top, 0o755), os.Chown(top, 0, 0), os.MkdirAll(folder, 0o755), os.WriteFile(file, nil, 0o755))
	}
	if err := errors.Join(make(), RootOnly(file)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"a file of another":          func() error { return os.Chown(file, 1000, 0) },
		"a file that all write":      func() error { return os.Chmod(file, 0o757) },
		"a file that a group writes": func() error { return errors.Join(os.Chown(file, 0, 1000), os.Chmod(file, 0o775)) },
		"a folder of another":        func() error { return os.Chown(folder, 1000, 0) },
		"a folder above, all write":  func() error { return os.Chmod(top, 0o777) },
		"a folder above, sticky":     func() error { return os.Chmod(top, 0o777|os.ModeSticky) },
		"a folder that is a link": func() error {
			return errors.Join(os.Rename(folder, folder+"2"), os.Symlink(folder+"2", folder))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if RootOnly(file) == nil {
			t.Errorf("%s counts as root's alone", name)
		}
		os.RemoveAll(folder)
		if err := make(); err != nil {
			t.Fatal(err)
		}
	}
	if err := RootOnly(filepath.Join(top, "none")); err == nil {
		t.Error("a file that is not there counts")
	}
}
