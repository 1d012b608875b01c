// SPDX-License-Identifier: GPL-2.0-only

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const stranger = 65534

// text is that of a journal whose owner is gone.
func text(t testing.TB, steps ...Step) []byte {
	t.Helper()
	text, err := json.Marshal(Journal{Version: version, Owner: Process{PID: 1 << 30}, Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var good = Step{Kind: Sysctl, Key: "net/ipv4/conf/eth0/forwarding", Set: "1", Old: "0"}

func TestOnlyAFileOfTheUsersOwnIsAJournal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: giving a file to another user takes root")
	}
	dir := directory(t)
	l := lock(t)
	defer func() {
		os.RemoveAll(dir)
		l.Unlock()
	}()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	plant := map[string]func(path string) error{
		"is of user 65534": func(path string) error {
			return errors.Join(os.WriteFile(path, text(t, good), 0o600), os.Chown(path, stranger, stranger))
		},
		"other users may write": func(path string) error {
			return errors.Join(os.WriteFile(path, text(t, good), 0o600), os.Chmod(path, 0o620))
		},
		"too many levels of symbolic links": func(path string) error {
			return errors.Join(os.WriteFile(elsewhere, text(t, good), 0o600), os.Symlink(elsewhere, path))
		},
		"expected a file": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"bytes, expected": func(path string) error {
			return errors.Join(os.WriteFile(path, text(t, good), 0o600), os.Truncate(path, mostText+1))
		},
	}
	for word, make := range plant {
		path := filepath.Join(dir, "x.json")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Load(path); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("expected %q: %v", word, err)
		}
		if all, err := l.List(); len(all) != 0 || err == nil {
			t.Errorf("%s: listed %v, %v", word, all, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADraftThatIsALinkIsNotWrittenThrough(t *testing.T) {
	dir := directory(t)
	l := lock(t)
	defer l.Unlock()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.WriteFile(elsewhere, []byte("kept"), 0o600), os.Symlink(elsewhere, filepath.Join(dir, "x.json.new"))); err != nil {
		t.Fatal(err)
	}
	j := saved(t, l, "x", good)
	if kept, err := os.ReadFile(elsewhere); string(kept) != "kept" {
		t.Errorf("%q, %v", kept, err)
	}
	if err := l.Remove(j); err != nil {
		t.Error(err)
	}
}

// Each of these would have root change something that guise never changes.
var bad = []Step{
	{Kind: Sysctl, Key: "kernel/core_pattern", Set: "core", Old: "|/tmp/evil"},
	{Kind: Sysctl, Key: "net/ipv4/conf/../../../kernel/modprobe", Set: "1", Old: "0"},
	{Kind: Sysctl, Key: "net/ipv4/conf/../forwarding", Set: "1", Old: "0"},
	{Kind: Sysctl, Key: "net/ipv4/conf/a/b/forwarding", Set: "1", Old: "0"},
	{Kind: Sysctl, Key: "net/ipv4/conf/eth0/rp_filter", Set: "1", Old: "0"},
	{Kind: Sysctl, Key: "net/ipv4/conf/eth0/forwarding", Set: "0", Old: "/tmp/evil"},
	{Kind: Sysctl, Key: "net/ipv4/conf/eth0/forwarding", Set: "0", Old: "1\n2"},
	{Kind: Sysctl, Key: "../../etc/passwd", Set: "0", Old: "1"},
	{Kind: Sysctl, Key: "/etc/passwd", Set: "0", Old: "1"},
	{Kind: Sysctl},
	{Kind: Table, Family: "ip", Name: "filter"},
	{Kind: Table, Family: "ip", Name: "guise_other"},
	{Kind: Table, Family: "inet", Name: "guise_x"},
	{Kind: Table, Family: "netdev", Name: "guise_x"},
	{Kind: Table, Family: "netdev", Name: "guise_other_eth0"},
	{Kind: Table, Family: "netdev", Name: "guise_x_a/b"},
	{Kind: Ports, Set: "61000-65535\n1"},
	{Kind: Ports, Set: "../x"},
	{Kind: Ports},
	{Kind: Sysctl, Key: ReservedPorts, Set: "1", Old: "2"},
	{Kind: Device, Name: "eth0", Index: 2},
	{Kind: Device, Name: "tun0", Index: 3},
	{Kind: Device, Name: "guise0"},
	{Kind: "file", Name: "/etc/passwd"},
	{},
}

func TestAJournalNamesOnlyWhatGuiseChanges(t *testing.T) {
	for _, s := range bad {
		if j, err := parse("/run/guise/x.json", text(t, good, s)); err == nil {
			t.Errorf("taken: %v", j.Steps)
		} else if !strings.Contains(err.Error(), "no stack needs") {
			t.Errorf("%v: %v", s, err)
		}
	}
	fine := []Step{good, {Kind: Table, Family: "ip6", Name: "guise_x"}, {Kind: Device, Name: "guise12", Index: 4},
		{Kind: Table, Family: "netdev", Name: "guise_x_eth0"}, {Kind: Ports, Set: "61000-65535,8080"},
		{Kind: Sysctl, Key: "net/ipv6/conf/all/forwarding", Set: "1", Old: "0"},
		{Kind: Sysctl, Key: "net/ipv6/conf/wlp3s0.1@2/force_forwarding", Set: "1", Old: "0"}}
	if j, err := parse("/run/guise/x.json", text(t, fine...)); err != nil || len(j.Steps) != len(fine) {
		t.Errorf("%v, %v", j, err)
	}
}

// FuzzJournal shows that whatever a journal says, its steps stay within what guise changes: sysctls
// of interfaces, tables and devices with guise's own names.
func FuzzJournal(f *testing.F) {
	for _, s := range bad {
		f.Add(text(f, s))
	}
	f.Add(text(f, good, Step{Kind: Device, Name: "guise0", Index: 1}, Step{Kind: Table, Family: "ip", Name: "guise_x"}))
	f.Add([]byte(`{"version":1,"steps":null}`))
	f.Add([]byte(`{"Version":1,"steps":[{"KIND":"sysctl","key":"net/ipv4/conf/\u0000/forwarding","set":"1","old":"1"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := parse("/run/guise/x.json", text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("refused without a word")
			}
			return
		}
		for _, s := range j.Steps {
			switch s.Kind {
			case Sysctl:
				clean := filepath.Clean("/proc/sys/" + s.Key)
				if clean != "/proc/sys/"+s.Key || len(strings.Split(s.Key, "/")) != 5 || strings.ContainsRune(s.Key, 0) ||
					!strings.HasPrefix(clean, "/proc/sys/net/ipv4/conf/") && !strings.HasPrefix(clean, "/proc/sys/net/ipv6/conf/") {
					t.Errorf("the sysctl %q", s.Key)
				}
				var n uint64
				if _, err := fmt.Sscanf(s.Old, "%d", &n); err != nil || len(s.Old) > 10 {
					t.Errorf("the value %q", s.Old)
				}
			case Table:
				if s.Name != "guise_x" && !strings.HasPrefix(s.Name, "guise_x_") {
					t.Errorf("the table %q", s.Name)
				}
			case Ports:
				if strings.Trim(s.Set, "0123456789-,") != "" {
					t.Errorf("the ports %q", s.Set)
				}
			case Device:
				if !strings.HasPrefix(s.Name, "guise") || len(s.Name) > 15 {
					t.Errorf("the device %q", s.Name)
				}
			default:
				t.Errorf("a step %q", s.Kind)
			}
		}
	})
}
