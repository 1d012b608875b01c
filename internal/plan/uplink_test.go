// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func uplinks(t *testing.T, texts ...string) []*Uplink {
	t.Helper()
	var all []*Uplink
	for _, text := range texts {
		u, err := ParseUplink(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, u)
	}
	return all
}

func TestUplinksAreRead(t *testing.T) {
	all := uplinks(t, "wlan0", "eth0,ports=61000-65535,8080,backup,mtu=1400", "usb0,address=192.0.2.2/24,gateway=192.0.2.1,metric=7", "wwan0,exclusive")
	if u := all[0]; u.Way != Share || u.Ports != nil || fmt.Sprint(u.EndpointFlags(false)) != "[subflow]" {
		t.Errorf("%+v", u)
	}
	if u := all[1]; FormatPorts(u.Ports) != "61000-65535,8080" || u.MTU != 1400 || fmt.Sprint(u.EndpointFlags(true)) != "[backup subflow]" {
		t.Errorf("%+v", u)
	}
	if u := all[2]; u.Way != Own || len(u.Addresses) != 1 || len(u.Gateways) != 1 || u.Metric != 7 {
		t.Errorf("%+v", u)
	}
	if all[3].Way != Exclusive {
		t.Errorf("%+v", all[3])
	}
	if err := CheckUplinks(all); err != nil {
		t.Error(err)
	}
	if ports, shares := SharedPorts(all); !shares || FormatPorts(ports) != "61000-65535,8080" {
		t.Errorf("%v %v", ports, shares)
	}
	for i, want := range []int{100, 101, 7, 103} {
		if got := MetricOf(all, i); got != want {
			t.Errorf("metric %d of %s, want %d", got, all[i].Name, want)
		}
	}
	if u := uplinks(t, "x,signal")[0]; fmt.Sprint(u.EndpointFlags(false)) != "[signal]" {
		t.Errorf("%v", u.EndpointFlags(false))
	}
}

func TestUplinksThatCannotBe(t *testing.T) {
	refused(t, func(s string) error { _, err := ParseUplink(s); return err }, map[string]string{
		"":                                      "cannot be the name",
		"a/b":                                   "cannot be the name",
		"lo":                                    "leads to no network",
		"x,exklusive":                           "did you mean exclusive?",
		"x,own,share":                           "exclude each other",
		"x,ports=":                              "is no range",
		"x,ports=0":                             "from 1 to 65535",
		"x,ports=9-8":                           "from 1 to 65535",
		"x,ports=61000-65535,62000":             "overlap",
		"x,ports=1-70000":                       "from 1 to 65535",
		"x,own,ports=61000-65535":               "ports are for share",
		"x,share,address=192.0.2.2/24":          "an address is for own",
		"x,address=192.0.2.2":                   "with its prefix length",
		"x,address=1.2.3.4/8,address=1.2.3.5/8": "second address",
		"x,address=192.0.2.2/24,gateway=192.0.2.2":   "the stack's own",
		"x,address=192.0.2.2/24,gateway=203.0.113.1": "on no network",
		"x,gateway=192.0.2.1":                        "on no network",
		"x,mtu=1":                                    "from 576",
		"x,metric=0":                                 "from 1 on",
		"x,signal,fullmesh":                          "expected one of them",
	})
	for text, part := range map[string]string{
		"x x":                               "named twice",
		"a b c d e f g h i":                 "at most 8",
		"x,metric=101 y":                    "one metric",
		"x,ports=61000-62000 y,ports=1-500": "same ports",
		"x,address=192.0.2.2/24 y,address=192.0.2.2/24": "one address",
	} {
		if err := CheckUplinks(uplinks(t, strings.Fields(text)...)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v; want something about %q", text, err, part)
		}
	}
	all := uplinks(t, "x", "y,metric=5")
	if err := Prefer(all, "z"); err == nil || !strings.Contains(err.Error(), "valid are x, y") {
		t.Error(err)
	}
	if err := Prefer(nil, "z"); err == nil || !strings.Contains(err.Error(), "which has none") {
		t.Error(err)
	}
	if err := Prefer(all, "x"); err != nil {
		t.Error(err)
	}
	if err := CheckUplinks(all); err == nil || !strings.Contains(err.Error(), "is preferred") {
		t.Error(err)
	}
	for text, part := range map[string]string{"x": "IFNAME=SIZE", "x=": "is no size", "x=0": "is no size", "z=1G": "valid are"} {
		if err := SetBudget(all, text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := SetBudget(all, "x=200MB"); err != nil || all[0].Budget != 200<<20 {
		t.Errorf("%d, %v", all[0].Budget, err)
	}
}

// The descriptors of the follower come after all that have a line, and before those that are only held.
func TestPlanOfUplinks(t *testing.T) {
	follow, err := NewFollow("/usr/bin/guise")
	if err != nil {
		t.Fatal(err)
	}
	follow.Sysctls = []Sysctl{{"net.ipv4.ip_local_port_range", "61000 65535"}}
	g := guests()
	r := Run{Name: "x", Memory: DefaultMemory, MPTCP: true, Guests: g, Follow: follow, Held: 1,
		Control: &Control{Path: "/run/x", Told: map[string]string{}}, Publications: []*Publication{{Port: 80}}}
	var lines []string
	for _, l := range r.Plan(6).Lines {
		lines = append(lines, l.Text)
	}
	for _, want := range []string{"follow /usr/bin/guise fd=10 fd=11", "hold fd=12", "mptcp limits 8 8",
		"sysctl net.ipv4.conf.all.ignore_routes_with_linkdown 1", "sysctl net.ipv4.ip_local_port_range 61000 65535"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in %q", want, lines)
		}
	}
	if slices.Index(lines, "follow /usr/bin/guise fd=10 fd=11") < slices.Index(lines, "control fd=7 /run/x") {
		t.Error("follow stands before control")
	}
	if _, err := NewFollow("/a b/guise"); err == nil {
		t.Error("a path with a blank was taken")
	}
}
