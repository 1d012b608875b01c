// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"net/netip"
	"testing"
)

func TestNameServersAndNames(t *testing.T) {
	r := Run{Name: "x", Memory: DefaultMemory, Links: links(t, "tap:a", "tap:b")}
	add(t, AddAddress, r.Links, "eth0=192.0.2.2/24", "eth1=198.51.100.2/24", "eth1=2001:db8::2/64")
	add(t, AddGateway, r.Links, "eth0=192.0.2.1", "eth0=fe80::1", "eth1=198.51.100.1")
	r.AddHosts(true)
	servers := []netip.Addr{r.AddResolver(netip.Addr{}), r.AddResolver(netip.MustParseAddr("2001:db8::53"))}
	r.Links = links(t, "none")
	check(t, r.Plan(6).Text(), `
		name x
		memory 256M
		boot
		resolver 169.254.77.11
		resolver 169.254.77.12 2001:db8::53
		host host.guise.internal 169.254.77.1
		host host.guise.internal fd67:7569:7365::1
		host gateway.guise.internal 192.0.2.1
		`)
	want := "169.254.77.1 host.guise.internal\nfd67:7569:7365::1 host.guise.internal\n192.0.2.1 gateway.guise.internal\n"
	if text := r.HostsFile(); text != want {
		t.Errorf("got %q", text)
	}
	want = "# written by guise run\nnameserver 169.254.77.11\nnameserver 169.254.77.12\nsearch a.test\n"
	if text := ResolvConf(servers, []string{"search a.test"}); text != want {
		t.Errorf("got %q", text)
	}
}
