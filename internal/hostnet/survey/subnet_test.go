// SPDX-License-Identifier: GPL-2.0-only

package survey

import (
	"net/netip"
	"strings"
	"testing"
)

func networks(texts ...string) Networks {
	var t Networks
	for _, text := range texts {
		t = append(t, netip.MustParsePrefix(text))
	}
	return t
}

func TestSubnetIsOneTheHostDoesNotUse(t *testing.T) {
	for _, c := range []struct {
		taken Networks
		stack string
	}{
		{nil, "10.213.0.2/30"},
		{networks("10.213.0.0/30", "10.213.0.4/31"), "10.213.0.10/30"},
		{networks("10.213.0.1/32"), "10.213.0.6/30"},
		// A VPN has all of 10/8; its other half of everything does not count.
		{networks("10.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1"), "172.29.128.2/30"},
		{networks("10.0.0.0/8", "172.16.0.0/12"), "192.168.213.2/30"},
		{networks("192.168.0.0/16", "fd00::/8"), "10.213.0.2/30"},
	} {
		got, err := c.taken.Free4()
		if err != nil || got.Stack.String() != c.stack {
			t.Errorf("%v: got %v, %v, want %s", c.taken, got, err, c.stack)
		}
		if got.Host.Addr().Next() != got.Stack.Addr() || got.Host.Masked() != got.Stack.Masked() {
			t.Errorf("%v: the host has %v", c.taken, got.Host)
		}
	}
	if _, err := networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16").Free4(); err == nil || !strings.Contains(err.Error(), "--ip") {
		t.Errorf("all networks are taken: %v", err)
	}
	six, err := networks("fd67:7569:7365:1::/64", "::/0", "2000::/3").Free6()
	if err != nil || six.Stack.String() != "fd67:7569:7365:2::2/64" || six.Host.String() != "fd67:7569:7365:2::1/64" {
		t.Errorf("IPv6: %v, %v", six, err)
	}
}

func TestHostsAddressBesideTheStack(t *testing.T) {
	for _, c := range []struct{ stack, gateway, host string }{
		{"192.0.2.2/24", "", "192.0.2.1/24"},
		{"192.0.2.1/24", "", "192.0.2.2/24"},
		{"192.0.2.1/24", "192.0.2.254", "192.0.2.254/24"},
		{"192.0.2.2/30", "", "192.0.2.1/30"},
		{"192.0.2.0/31", "", "192.0.2.1/31"},
		{"192.0.2.1/31", "", "192.0.2.0/31"},
		{"2001:db8::1/64", "", "2001:db8::2/64"},
		{"2001:db8::9/64", "fe80::1", "2001:db8::1/64"},
		{"2001:db8::/127", "", "2001:db8::1/127"},
		{"192.0.2.1/32", "", ""},
	} {
		var gateways []netip.Addr
		if c.gateway != "" {
			gateways = append(gateways, netip.MustParseAddr(c.gateway))
		}
		got, err := Opposite(netip.MustParsePrefix(c.stack), gateways)
		if c.host == "" {
			if err == nil {
				t.Errorf("%s: got %v", c.stack, got)
			}
		} else if err != nil || got.String() != c.host {
			t.Errorf("%s: got %v, %v, want %s", c.stack, got, err, c.host)
		}
	}
}
