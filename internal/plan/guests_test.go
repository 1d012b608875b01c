// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func guests() *Guests {
	return &Guests{
		Stack:     []netip.Prefix{netip.MustParsePrefix("10.213.0.1/30"), netip.MustParsePrefix("fd67::1/64")},
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.213.0.2/30"), netip.MustParsePrefix("fd67::2/64")},
	}
}

func TestGuestsHaveTheWaysOfTheStack(t *testing.T) {
	g := guests()
	g.FindWays([]*Link{
		{MTU: 1400, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")}, Gateways: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.3/24"), netip.MustParsePrefix("2001:db8::2/64")}},
	})
	if want := "[0.0.0.0/0 169.254.77.0/24 192.0.2.0/24 2001:db8::/64 fd67:7569:7365::/64]"; fmt.Sprint(g.Routes) != want || g.MTU != 1400 {
		t.Errorf("got %v, MTU %d, want %v", g.Routes, g.MTU, want)
	}
	four := guests()
	four.Addresses = four.Addresses[:1]
	four.FindWays(nil)
	if want := "[169.254.77.0/24]"; fmt.Sprint(four.Routes) != want || four.MTU != 1500 {
		t.Errorf("got %v, MTU %d, want %v", four.Routes, four.MTU, want)
	}
}

func TestGuestsTakeWhatHoldsForTheirEnd(t *testing.T) {
	g := guests()
	g.TakeSysctls([]Sysctl{{"net.ipv4.tcp_sack", "0"}, {"net/ipv4/tcp_syn_retries", "2"}})
	if want := "[net/ipv4/tcp_syn_retries=2]"; fmt.Sprint(g.Sysctls) != want {
		t.Errorf("got %v, want %v", g.Sysctls, want)
	}
}

func TestPlanOfGuests(t *testing.T) {
	g := guests()
	g.FindWays(nil)
	for _, c := range []struct {
		control *Control
		fd      int
	}{{nil, 8}, {&Control{Path: "/run/x", Told: map[string]string{}}, 9}} {
		r := Run{Name: "x", Memory: DefaultMemory, MPTCP: true, Guests: g, Control: c.control,
			Links:        []*Link{{Inside: "eth0", Kind: Tap, FD: -1, Offload: true}},
			Publications: []*Publication{{Port: 80}}}
		text := r.Plan(6).Text()
		for _, line := range []string{
			fmt.Sprintf("link guest0 tun fd=%d mtu=1500", c.fd),
			"address guest0 10.213.0.1/30",
			fmt.Sprintf("guests guest0 fd=%d mptcp 10.213.0.2 fd67::2", c.fd+1),
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no line %q in\n%s", line, text)
			}
		}
		// Before there is a link, so that this one's routers are heard.
		if strings.Index(text, "sysctl net.ipv6.conf.default.accept_ra 2\n") > strings.Index(text, "link eth0") {
			t.Errorf("too late:\n%s", text)
		}
	}
}
