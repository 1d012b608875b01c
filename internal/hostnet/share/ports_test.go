// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/sysctl"
	"guise/internal/nettest"
)

func TestPortsAreReadAsLinuxWritesThem(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "8080": "8080", "61000-65535,8080": "8080,61000-65535", "1-3,4,6-7,5": "1-7", "65535": "65535", "10-20,12-15": "10-20",
	} {
		if p, err := ParsePorts(text); err != nil || p.String() != want {
			t.Errorf("%q is %q (%v), expected %q", text, p, err, want)
		}
	}
	for _, text := range []string{"0", "0-9", "9-8", "65536", "-5", "a", "1-2-3", "80 90"} {
		if p, err := ParsePorts(text); err == nil {
			t.Errorf("%q is taken as %q", text, p)
		}
	}
}

func ports(t *testing.T, text string) Ports {
	t.Helper()
	p, err := ParsePorts(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPortsAreSets(t *testing.T) {
	for _, c := range []struct{ a, b, with, without, both string }{
		{"1-10", "3-4", "1-10", "1-2,5-10", "3-4"},
		{"1-10", "8-20", "1-20", "1-7", "8-10"},
		{"5,7,9", "1-7,9", "1-7,9", "", "5,7,9"},
		{"60000-65535", "65535", "60000-65535", "60000-65534", "65535"},
		{"1-2", "", "1-2", "1-2", ""},
	} {
		a, b := ports(t, c.a), ports(t, c.b)
		if a.With(b).String() != c.with || a.Without(b).String() != c.without || a.Both(b).String() != c.both {
			t.Errorf("%s and %s: with %q, without %q, both %q", a, b, a.With(b), a.Without(b), a.Both(b))
		}
		for port := range 1 << 16 {
			p := uint16(port)
			if a.Without(b).Contains(p) != (a.Contains(p) && !b.Contains(p)) {
				t.Fatalf("%s without %s: %d", a, b, p)
			}
		}
	}
}

func TestStackChoosesItsPortsFromTheLongestRange(t *testing.T) {
	for text, want := range map[string]string{
		"8080,61000-65535":             "61000 65535 ()",
		"61000-61100,61102-62000,9000": "61000 61999 (61101)",
		"20000-20100,50000-59999":      "50000 59999 ()",
	} {
		settings := StackSettings(ports(t, text))
		got, holes := settings[0].Value, ""
		for _, s := range settings {
			if s.Key == "net.ipv4.ip_local_reserved_ports" {
				holes = s.Value
			}
		}
		if got += " (" + holes + ")"; got != want {
			t.Errorf("%s: %s, expected %s", text, got, want)
		}
	}
}

// host is a folder of sysctls.
func host(t *testing.T, own, reserved string) sysctl.Directory {
	t.Helper()
	s := sysctl.Directory(t.TempDir())
	if err := errors.Join(os.MkdirAll(filepath.Join(string(s), "net/ipv4"), 0o755),
		os.WriteFile(filepath.Join(string(s), rangeKey), []byte(own+"\n"), 0o644),
		os.WriteFile(filepath.Join(string(s), reservedKey), []byte(reserved+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return s
}

func unused(Ports) ([]use, error) { return nil, nil }

func TestTwoStacksGetPortsOfTheirOwnAndGiveThemBack(t *testing.T) {
	const linux = "32768\t60999"
	s := host(t, linux, "40000")
	first, second := &notes{}, &notes{}
	a, e1 := reserve(s, first, "", unused)
	b, e2 := reserve(s, second, "", unused)
	if err := errors.Join(e1, e2); err != nil {
		t.Fatal(err)
	}
	if a.String() != "61440-65535" || len(a.Both(b)) > 0 || b.Count() != DefaultPorts {
		t.Errorf("%s and %s", a, b)
	}
	for _, n := range []*notes{first, second} {
		for _, step := range n.steps {
			if err := Release(s, step.Set); err != nil {
				t.Error(err)
			}
		}
	}
	if left, _ := s.Read(reservedKey); left != "40000" {
		t.Errorf("reserved afterwards: %q", left)
	}
}

func TestPortsOfTheHostsSocketsAreLeftOut(t *testing.T) {
	got, err := reserve(host(t, "32768 60999", ""), &notes{}, "", func(Ports) ([]use, error) {
		return []use{{"tcp", 62000, 0}, {"udp", 65535, 7}}, nil
	})
	if err != nil || got.String() != "61440-61999,62001-65534" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestPortsThatCannotBeHadAreNamed(t *testing.T) {
	other := &journal.Journal{Steps: []journal.Step{{Kind: journal.Ports, Set: "61000-61999"}}}
	for _, c := range []struct{ own, reserved, want, says string }{
		{"32768 60999", "", "61500-62500", "ports 61500-61999 are another stack's"},
		{"32768 60999", "", "8080", "has 1; expected one of at least 64"},
		{"32768 60999", "", "61000-x", "no list of ports"},
		{"32768 60999", "", "30000-60000", "would leave 999 of the host's own"},
		{"60000 65535", "60500-65000", "", "the host has no room"},
	} {
		_, err := reserve(host(t, c.own, c.reserved), &notes{others: []*journal.Journal{other}}, c.want, unused)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestPortOfAProgramIsNamed(t *testing.T) {
	nettest.Namespace(t)
	listener, err := net.Listen("tcp", "[::]:61234")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	local, err := net.ListenPacket("udp", "127.0.0.1:61235")
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	_, err = Reserve(&notes{}, "61200-61299")
	if err == nil || !strings.Contains(err.Error(), "port 61234 (tcp) is in use by share.test (pid ") {
		t.Errorf("%v", err)
	}
	listener.Close()
	if _, err = Reserve(&notes{}, "61200-61299"); err != nil {
		t.Errorf("a socket of lo is in the way: %v", err)
	}
}

func FuzzPorts(f *testing.F) {
	f.Add("61000-65535,8080", "8080")
	f.Fuzz(func(t *testing.T, one, two string) {
		a, e1 := ParsePorts(one)
		b, e2 := ParsePorts(two)
		if e1 != nil || e2 != nil {
			return
		}
		if again, err := ParsePorts(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("%q is read as %q: %v", a, again, err)
		}
		if a.Count()+b.Count() != a.With(b).Count()+a.Both(b).Count() {
			t.Errorf("%s, %s: with %s, both %s", a, b, a.With(b), a.Both(b))
		}
	})
}

// forUsers is a folder of sysctls in which the rest stands that is asked for users' stacks.
func forUsers(t *testing.T, reserved, unprivileged, forwarding string) sysctl.Directory {
	t.Helper()
	s := host(t, "32768 60999", reserved)
	conf := filepath.Join(string(s), "net/ipv4/conf/docker0")
	if err := errors.Join(os.WriteFile(filepath.Join(string(s), privilegedKey), []byte(unprivileged+"\n"), 0o644), os.MkdirAll(conf, 0o755),
		os.WriteFile(filepath.Join(conf, "forwarding"), []byte(forwarding+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAUsersPortsAreNobodyElses(t *testing.T) {
	for _, c := range []struct{ reserved, unprivileged, forwarding, want, gets, says string }{
		{"", "1024", "0", "", "61440-65535", ""},
		{"", "1024", "0", "2000-2100", "2000-2100", ""},
		{"", "1024", "0", "50000-50100", "50000-50100", ""},
		{"2050-2060", "1024", "0", "2000-2100", "", "ports 2050-2060 are reserved"},
		{"", "3000", "0", "2000-2100", "", "port 2000 is below 3000"},
		{"", "0", "0", "1000-1100", "", "port 1000 is below 1024"},
		// A host that forwards.
		{"", "1024", "1", "", "64512-65535", ""},
		{"64512-65535", "1024", "1", "", "63488-64511", ""},
		{"61500-65535", "1024", "1", "", "", "has no room for a stack's ports above"},
		{"", "1024", "1", "60000-61500", "", "ports 60000-60999 are of those that it may choose"},
		{"", "1024", "1", "61000-61500", "61000-61500", ""},
	} {
		got, err := reserveForUser(forUsers(t, c.reserved, c.unprivileged, c.forwarding), &notes{}, c.want, unused)
		if got.String() != c.gets || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}
