// SPDX-License-Identifier: GPL-2.0-only

package nat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/sysctl"
)

// fakeSysctls is a /proc/sys with these values.
func fakeSysctls(t *testing.T, values map[string]string) sysctl.Directory {
	t.Helper()
	root := t.TempDir()
	for key, value := range values {
		path := filepath.Join(root, key)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sysctl.Directory(root)
}

func texts(steps []journal.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s %s>%s", s.Key, s.Old, s.Set))
	}
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func need(t *testing.T, s sysctl.Directory, j *journal.Journal, interfaces ...string) *Forwarding {
	t.Helper()
	f, err := Forward(s, j, interfaces, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRouterNeedsNothing(t *testing.T) {
	s := fakeSysctls(t, map[string]string{
		"net/ipv4/conf/eth0/forwarding": "1",
		"net/ipv6/conf/all/forwarding":  "1",
	})
	f := need(t, s, &journal.Journal{}, "eth0")
	if len(f.Steps)+len(f.Writes)+len(f.Closed4)+len(f.Closed6) != 0 {
		t.Errorf("got %+v", f)
	}
}

func TestOnlyInterfacesThatDoNotForwardAreTold(t *testing.T) {
	s := fakeSysctls(t, map[string]string{
		"net/ipv4/conf/eth0/forwarding":       "0",
		"net/ipv4/conf/br0/forwarding":        "1",
		"net/ipv6/conf/all/forwarding":        "0",
		"net/ipv6/conf/all/force_forwarding":  "0",
		"net/ipv6/conf/eth0/force_forwarding": "0",
		"net/ipv6/conf/br0/force_forwarding":  "1",
		"net/ipv6/conf/eth0/accept_ra":        "1",
	})
	f := need(t, s, &journal.Journal{}, "eth0", "br0", "gone")
	want := []string{"net/ipv4/conf/eth0/forwarding 0>1", "net/ipv6/conf/eth0/force_forwarding 0>1"}
	same(t, "steps", texts(f.Steps), want...)
	same(t, "writes", texts(f.Writes), want...)
	same(t, "closed for IPv4", f.Closed4, "eth0")
	same(t, "closed for IPv6", f.Closed6, "eth0")
}

// Kernels before 6.17 have one switch for all, which makes an interface deaf
// to router advertisements, and when turned off again turns off every one.
func TestSwitchForAllKeepsRouterAdvertisements(t *testing.T) {
	s := fakeSysctls(t, map[string]string{
		"net/ipv4/conf/eth0/forwarding": "1",
		"net/ipv4/conf/br0/forwarding":  "1",
		"net/ipv6/conf/all/forwarding":  "0",
		"net/ipv6/conf/eth0/forwarding": "0",
		"net/ipv6/conf/eth0/accept_ra":  "1",
		"net/ipv6/conf/br0/forwarding":  "1",
		"net/ipv6/conf/br0/accept_ra":   "0",
	})
	f := need(t, s, &journal.Journal{}, "eth0", "br0")
	same(t, "steps", texts(f.Steps),
		"net/ipv6/conf/eth0/accept_ra 1>2", "net/ipv6/conf/br0/forwarding 1>0", "net/ipv6/conf/all/forwarding 0>1")
	same(t, "writes", texts(f.Writes), "net/ipv6/conf/eth0/accept_ra 1>2", "net/ipv6/conf/all/forwarding 0>1")
	same(t, "closed for IPv6", f.Closed6, "eth0", "br0")

	// Done; and a second stack comes, which needs all of that too.
	for _, w := range f.Writes {
		if err := s.Write(w.Key, w.Set); err != nil {
			t.Fatal(err)
		}
	}
	second := need(t, s, &journal.Journal{Steps: f.Steps}, "eth0", "br0")
	same(t, "steps of the second", texts(second.Steps))
	same(t, "writes of the second", texts(second.Writes))
	same(t, "closed by the second", second.Closed6, "eth0", "br0")

	// In reverse, as undo goes: the switch turns br0 off, too.
	for i := len(f.Steps) - 1; i >= 0; i-- {
		if err := s.Restore(f.Steps[i]); err != nil {
			t.Fatal(err)
		}
		if f.Steps[i].Key == "net/ipv6/conf/all/forwarding" {
			if err := s.Write("net/ipv6/conf/br0/forwarding", "0"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for key, want := range map[string]string{"all/forwarding": "0", "eth0/accept_ra": "1", "br0/forwarding": "1"} {
		if got, err := s.Read("net/ipv6/conf/" + key); got != want {
			t.Errorf("%s is %q (%v), want %q", key, got, err, want)
		}
	}
}
