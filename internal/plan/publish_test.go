// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPublicationsAreRead(t *testing.T) {
	for text, want := range map[string]Publication{
		"8080:80":             {Host: netip.MustParseAddrPort("127.0.0.1:8080"), Port: 80},
		"0:80/tcp":            {Host: netip.MustParseAddrPort("127.0.0.1:0"), Port: 80},
		"0.0.0.0:5353:53/udp": {Host: netip.MustParseAddrPort("0.0.0.0:5353"), Port: 53, UDP: true},
		"[::1]:8080:80":       {Host: netip.MustParseAddrPort("[::1]:8080"), Port: 80},
	} {
		got, err := ParsePublication(text)
		want.Flag = "--publish " + text
		if err != nil || *got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

func TestBadPublicationsAreNamed(t *testing.T) {
	for text, part := range map[string]string{
		"80":           "HOSTPORT:PORT",
		"8080:80/sctp": "neither tcp nor udp",
		"::1:8080:80":  "brackets",
		"web:8080:80":  `"web" is no address`,
		"65536:80":     "host's port",
		"8080:0":       "stack's port",
		"8080:":        "stack's port",
	} {
		if _, err := ParsePublication(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
