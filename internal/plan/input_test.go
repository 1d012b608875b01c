// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"strings"
	"testing"
	"time"
)

// refused checks that each input is refused, with words that help.
func refused(t *testing.T, parse func(string) error, inputs map[string]string) {
	t.Helper()
	for input, part := range inputs {
		if err := parse(input); err == nil {
			t.Errorf("%q was taken", input)
		} else if !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v; want something about %q", input, err, part)
		}
	}
}

func TestUnknownCongestionControlIsNamedWithTheValid(t *testing.T) {
	has := []string{"cubic", "reno", "westwood"}
	for _, name := range has {
		if err := CheckCongestionControl(name, has); err != nil {
			t.Error(err)
		}
	}
	refused(t, func(name string) error { return CheckCongestionControl(name, has) }, map[string]string{
		"":         "valid are cubic, reno",
		"quantum":  "valid are cubic, reno",
		"westwod":  "did you mean westwood?",
		"cubic\nx": "did you mean cubic?",
	})
	if err := CheckCongestionControl("pigeon", nil); err != nil {
		t.Errorf("nobody knows what the image has: %v", err)
	}
	refused(t, func(name string) error { return CheckCongestionControl(name, nil) }, map[string]string{
		"": "1 to 15 letters", "a b": "1 to 15 letters", "cubic\nx": "1 to 15 letters",
	})
	refused(t, func(name string) error { return CheckScheduler(name, []string{"default"}) },
		map[string]string{"defult": "did you mean default?"})
}

func TestSysctls(t *testing.T) {
	got, err := ParseSysctl("net/ipv4/conf/eth0/rp_filter = 2 ")
	if err != nil || got != (Sysctl{"net/ipv4/conf/eth0/rp_filter", "2"}) {
		t.Errorf("got %v, %v", got, err)
	}
	refused(t, func(s string) error { _, err := ParseSysctl(s); return err }, map[string]string{
		"net.ipv4.tcp_sack":      "expected KEY=VALUE",
		"net.ipv4.tcp_sack=":     "expected KEY=VALUE",
		"tcp_sack=1":             "net.ipv4.tcp_sack",
		"net..x=1":               "is no sysctl",
		"net.ipv4/../../x=1":     "is no sysctl",
		"net.x=1\nlink eth0 tap": "control character",
		"net.x y=1":              "is no sysctl",
	})
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]uint64{"64M": 64 << 20, "1g": 1 << 30, "33554432": 32 << 20, "40000k": 40000 << 10, "64MiB": 64 << 20} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	refused(t, func(s string) error { _, err := ParseMemory(s); return err }, map[string]string{
		"":                        "is no size",
		"much":                    "is no size",
		"-1":                      "is no size",
		"31M":                     "at least 32M",
		"4077M":                   "at most 4076M",
		"99999999999999999999999": "at most 4076M",
	})
}

func TestNames(t *testing.T) {
	if err := CheckName("web-1.a_b"); err != nil {
		t.Error(err)
	}
	refused(t, CheckName, map[string]string{
		"":                      "1 to 32",
		"a b":                   "1 to 32",
		"../x":                  "1 to 32",
		".x":                    "1 to 32",
		strings.Repeat("x", 33): "1 to 32",
	})
}

func TestLinks(t *testing.T) {
	l := links(t)
	if len(l) != 1 || l[0].Auto() || l[0].Kind != "" || l[0].Inside != "eth0" {
		t.Errorf("without --link: %+v", l)
	}
	l = links(t, "tap", "tap:fd=7,mtu=9000", "tap:tap0")
	if len(l) != 3 || !l[0].Auto() || l[1].FD != 7 || l[1].MTU != 9000 || l[2].Device != "tap0" || l[2].Inside != "eth2" {
		t.Errorf("%+v %+v %+v", l[0], l[1], l[2])
	}
	l = links(t, "packet:eth0,ports=61000-65535,8080,9000-9001,mtu=1400", "packet:eth1,ports=auto", "packet:eth2")
	if l[0].Ports != "61000-65535,8080,9000-9001" || l[0].MTU != 1400 || l[1].Ports != PortsAuto || l[2].Ports != "" {
		t.Errorf("%+v %+v %+v", l[0], l[1], l[2])
	}
	if l := links(t, "none"); len(l) != 0 {
		t.Errorf("none: %+v", l)
	}
	refused(t, func(s string) error { _, err := ParseLinks([]string{s}, true); return err }, map[string]string{
		"wifi":                           "valid are " + strings.Join(LinkForms(), ", "),
		"":                               "valid are tap",
		"none,mtu=1":                     "stands alone",
		"tap:fd=x":                       "tap:fd=3",
		"tap:fd=-1":                      "tap:fd=3",
		"tap:averyveryverylongname":      "cannot be the name",
		"tap:a b":                        "cannot be the name",
		"tap:..":                         "cannot be the name",
		"tap,mut=1":                      "did you mean mtu?",
		"tap,mtu=60":                     "68 to 65521",
		"tap,mtu=65522":                  "68 to 65521",
		"tun:tun0,mtu=65536":             "68 to 65535",
		"tap,mtu=x":                      "expected a number",
		"tap,mac=01:00:00:00:00:01":      "02:00:00:00:00:01",
		"tap,mac=00:00:00:00:00:00":      "02:00:00:00:00:01",
		"tap,mac=1":                      "02:00:00:00:00:01",
		"tap,offload=no":                 "offload=on or offload=off",
		"tun":                            "tun:IFNAME, tun:fd=N for a tun of the host",
		"stream":                         "stream:PATH, stream:fd=N for a Unix stream socket",
		"stream:fd=x":                    "stream:fd=3",
		"passt:/tmp/x":                   "passt for a passt that guise starts; stream:PATH",
		"passt:fd=3":                     "no form of passt",
		"pair:fd=1:2:3:0":                "valid are tap",
		"tap,ports=auto":                 "only a packet:IFNAME",
		"packet:fd=7,ports=auto":         "only a packet:IFNAME",
		"packet:eth0,ports=":             "expected auto, or ports and ranges",
		"packet:eth0,ports=a-b":          "expected auto, or ports and ranges",
		"packet:eth0,ports=1-2,x":        "unknown link option",
		"packet:eth0,mtu=1400,8080":      "unknown link option",
		"tun:tun0,mac=02::1":             "MAC address",
		"tun:tun0,mac=02:00:00:00:00:01": "no Ethernet",
	})
	if _, err := ParseLinks([]string{"tap", "none"}, true); err == nil || !strings.Contains(err.Error(), "stands alone") {
		t.Errorf("tap and none: %v", err)
	}
	if _, err := ParseLinks(make([]string, 17), true); err == nil {
		t.Error("17 links were taken")
	}
}

func TestAddressesAndGateways(t *testing.T) {
	refused(t, func(s string) error { return AddAddress(links(t, "tap", "tap"), s) }, map[string]string{
		"192.0.2.2":            "192.0.2.2/24",
		"192.0.2.2/33":         "192.0.2.2/24",
		"192.0.2.0/24":         "192.0.2.1/24",
		"0.0.0.0/0":            "cannot be an interface's own",
		"224.0.0.1/24":         "cannot be an interface's own",
		"127.0.0.2/8":          "cannot be an interface's own",
		"::ffff:192.0.2.2/120": "cannot be an interface's own",
		"eth2=192.0.2.2/24":    "valid are eth0, eth1",
	})
	if err := AddAddress(links(t, "none"), "192.0.2.2/24"); err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("an address without a link: %v", err)
	}
	refused(t, func(s string) error {
		l := links(t, "tap")
		add(t, AddAddress, l, "192.0.2.2/24", "2001:db8::2/64")
		add(t, AddGateway, l, "192.0.2.254")
		return AddGateway(l, s)
	}, map[string]string{
		"gw":           "is no address of a gateway",
		"::":           "is no address of a gateway",
		"fe80::1%eth0": "is no address of a gateway",
		"192.0.2.1":    "second gateway",
		"2001:db8::2":  "own address",
		"2001:db9::1":  "is on no network of eth0",
	})
	if err := AddGateway(links(t, "tap"), "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "--ip") {
		t.Errorf("a gateway without an address: %v", err)
	}
}

func TestDelaysLossesAndRates(t *testing.T) {
	if d, err := ParseDelay("1.5ms"); err != nil || d != 1500*time.Microsecond {
		t.Error(d, err)
	}
	if l, err := ParseLoss("0.2%"); err != nil || l != 0.2 {
		t.Error(l, err)
	}
	for text, want := range map[string]uint64{"100mbit": 100e6, "2.5Gbit": 2.5e9, "64kbit": 64e3, "9600bit": 9600} {
		if r, err := ParseRate(text); err != nil || r != want {
			t.Errorf("%s: %d, %v", text, r, err)
		}
	}
	refused(t, func(s string) error { _, err := ParseDelay(s); return err },
		map[string]string{"": "20ms", "20": "20ms", "-1ms": "20ms", "2h": "1h"})
	refused(t, func(s string) error { _, err := ParseLoss(s); return err },
		map[string]string{"": "0.2%", "0.2": "0.2%", "101%": "0.2%", "-1%": "0.2%", "NaN%": "0.2%"})
	refused(t, func(s string) error { _, err := ParseRate(s); return err },
		map[string]string{"": "100mbit", "100": "100mbit", "100MB": "100mbit", "1bit": "1kbit to 1000gbit"})
}

func TestPathsWithBlanksCannotBeUndone(t *testing.T) {
	if _, err := NewUndo("/opt/my tools/guise", "/run/guise/1.json"); err == nil || !strings.Contains(err.Error(), "blanks") {
		t.Error(err)
	}
}
