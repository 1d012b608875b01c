// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func check(t *testing.T, got, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimLeft(want, "\n"), "\t", "")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func links(t *testing.T, specs ...string) []*Link {
	t.Helper()
	l, err := ParseLinks(specs, true)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, f func([]*Link, string) error, l []*Link, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := f(l, text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlanOfAWholeRun(t *testing.T) {
	l := links(t, "tap:tap0,mac=02:00:00:00:00:01,mtu=1400,offload=off")
	add(t, AddAddress, l, "192.0.2.2/24", "2001:db8::2/64")
	add(t, AddGateway, l, "192.0.2.1", "fe80::1")
	r := Run{Name: "curl", Memory: 64 << 20, CC: "westwood", MPTCP: true, Links: l, Netem: "delay 20ms loss 0.2%",
		Sysctls: []Sysctl{{"net.ipv4.conf.eth0.forwarding", "1"}, {"net.ipv4.tcp_rmem", "4096 131072 6291456"}},
		Undo:    &Undo{"/usr/bin/guise", "/run/guise/1.json"}}
	check(t, r.Plan(6).Text(), `
		name curl
		memory 64M
		undo /usr/bin/guise /run/guise/1.json
		boot
		sysctl net.ipv4.tcp_congestion_control westwood
		sysctl net.mptcp.enabled 1
		sysctl net.ipv4.tcp_rmem 4096 131072 6291456
		link eth0 tap fd=6 mac=02:00:00:00:00:01 mtu=1400 offload=off
		address eth0 192.0.2.2/24
		address eth0 2001:db8::2/64
		up eth0
		route default via 192.0.2.1 dev eth0
		route default via fe80::1 dev eth0
		sysctl net.ipv4.conf.eth0.forwarding 1
		qdisc eth0 netem delay 20ms loss 0.2%
		`)
}

func TestPlanWithoutALinkHasOnlyLo(t *testing.T) {
	r := Run{Name: "x", Memory: 100<<20 + 1, Links: links(t, "none")}
	check(t, r.Plan(6).Text(), `
		name x
		memory 104857601
		boot
		`)
}

func TestRelaysAndPublicationsComeLast(t *testing.T) {
	r := Run{Name: "x", Memory: DefaultMemory, Links: links(t, "tap:a"),
		Relays: []Relay{{From: HostAddress, To: "127.0.0.1"}, {From: "169.254.77.11:53", To: "127.0.0.53:53"}}}
	for _, text := range []string{"8080:80", "[::1]:5353:53/udp"} {
		p, err := ParsePublication(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Publications = append(r.Publications, p)
	}
	p := r.Plan(6)
	check(t, p.Text(), `
		name x
		memory 256M
		boot
		link eth0 tap fd=6
		up eth0
		relay 169.254.77.1 127.0.0.1
		relay 169.254.77.11:53 127.0.0.53:53
		publish fd=7 tcp 80
		publish fd=8 udp 53
		`)
}

func TestSecondLinkIsASecondPath(t *testing.T) {
	l := links(t, "tap:a", "tap:b")
	add(t, AddAddress, l, "eth0=192.0.2.2/24", "eth1=198.51.100.2/24")
	add(t, AddGateway, l, "eth0=192.0.2.1", "eth1=198.51.100.1")
	r := Run{Name: "x", Memory: DefaultMemory, MPTCP: true, Links: l}
	check(t, r.Plan(6).Text(), `
		name x
		memory 256M
		boot
		sysctl net.mptcp.enabled 1
		link eth0 tap fd=6
		address eth0 192.0.2.2/24
		up eth0
		link eth1 tap fd=7
		address eth1 198.51.100.2/24
		up eth1
		route default via 192.0.2.1 dev eth0
		route default via 198.51.100.1 dev eth1 table 101
		rule from 198.51.100.2/32 table 101
		mptcp limits 8 8
		mptcp endpoint 198.51.100.2 dev eth1 subflow
		`)
}

func TestEachLineKnowsWhoseItIs(t *testing.T) {
	l := links(t, "tap")
	add(t, AddAddress, l, "192.0.2.2/24")
	r := Run{Name: "x", Memory: DefaultMemory, Links: l, Netem: "delay 1ms", Sysctls: []Sysctl{{"net.nosuch", "1"}}}
	p := r.Plan(6)
	origins := map[string]string{}
	for i := range p.Lines {
		line, ok := p.Line(i + 1)
		if !ok {
			t.Fatalf("no line %d", i+1)
		}
		origins[line.Text] = line.Origin
	}
	for text, origin := range map[string]string{
		"boot":                       "",
		"sysctl net.nosuch 1":        "--sysctl net.nosuch=1",
		"link eth0 tap fd=6":         "--link tap",
		"address eth0 192.0.2.2/24":  "--ip 192.0.2.2/24",
		"qdisc eth0 netem delay 1ms": "--netem delay 1ms",
	} {
		if got, ok := origins[text]; !ok || got != origin {
			t.Errorf("%q has the origin %q, want %q", text, got, origin)
		}
	}
	if _, ok := p.Line(0); ok {
		t.Error("there is a line 0")
	}
	if _, ok := p.Line(len(p.Lines) + 1); ok {
		t.Error("there is a line after the last")
	}
}

func TestPlanOfAPath(t *testing.T) {
	forth := Impairment{Delay: 20 * time.Millisecond, Loss: 0.2, Rate: 100e6, Seed: 7}
	back := Impairment{Delay: 1500 * time.Microsecond, Limit: 50}
	p := Path{Memory: DefaultMemory, Forth: forth, Back: back, MTU: 1500}
	check(t, p.Plan(6).Text(), `
		name path
		memory 256M
		boot
		sysctl net.ipv4.ip_forward 1
		sysctl net.ipv6.conf.all.forwarding 1
		link a tap fd=6 offload=off mtu=1500
		link b tap fd=7 offload=off mtu=1500
		bridge br0 a b
		qdisc b netem delay 20000us loss 0.2% rate 100000000bit limit 1167 seed 7
		qdisc a netem delay 1500us limit 50
		up a
		up b
		up br0
		`)
}

func TestQueueOfAPathHoldsWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		i    Impairment
		want string
	}{
		{Impairment{}, "netem limit 1000"},
		{Impairment{Delay: 100 * time.Millisecond, Rate: 1e9}, "netem delay 100000us rate 1000000000bit limit 9334"},
		{Impairment{Delay: 12 * time.Millisecond}, "netem delay 12000us limit 11000"},
	} {
		if got := c.i.Netem(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestEndsOfAPath(t *testing.T) {
	for text, want := range map[string]End{
		"left":                                {Namespace: "left", Device: "path0"},
		"left:eth1":                           {Namespace: "left", Device: "eth1"},
		"tap:x":                               {Device: "x"},
		"r,ip=192.0.2.1/24":                   {Namespace: "r", Device: "path0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}},
		"tap:y,ip=fd00::1/64,ip=192.0.2.1/24": {Device: "y", Addresses: []netip.Prefix{netip.MustParsePrefix("fd00::1/64"), netip.MustParsePrefix("192.0.2.1/24")}},
	} {
		got, err := ParseEnd(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got.Namespace != want.Namespace || got.Device != want.Device || joinPrefixes(got.Addresses) != joinPrefixes(want.Addresses) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	for text, part := range map[string]string{
		"":              "no end of a path",
		"tap":           "tap:IFNAME",
		":x":            "no end of a path",
		"a/b":           "no end of a path",
		"..":            "no end of a path",
		"left:":         "cannot be the name",
		"left,up":       `unknown option "up"`,
		"left,ip=1.2.3": "192.0.2.2/24",
	} {
		if _, err := ParseEnd(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, want something about %q", text, err, part)
		}
	}
}
