// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net/netip"
	"strings"
	"testing"

	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

func TestNetworkThatTheHostUsesIsRefused(t *testing.T) {
	servers := survey.Networks{netip.MustParsePrefix("10.9.9.53/32"), netip.MustParsePrefix("10.0.0.1/32")}
	s := &survey.Survey{Taken: append(survey.Networks{netip.MustParsePrefix("10.0.0.0/24")}, servers...), Servers: servers}
	for address, part := range map[string]string{
		"10.9.9.2/24": "the host's name server 10.9.9.53 (/etc/resolv.conf) lies in that network",
		"10.0.0.7/24": "the host has 10.0.0.0/24 itself", // and its server there
		"10.9.8.2/24": "",
	} {
		link := &plan.Link{Kind: plan.Tap, FD: -1, Addresses: []netip.Prefix{netip.MustParsePrefix(address)}}
		err := proposeHosts(s, &madeTap{link: link})
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%s: got %v, want %q", address, err, part)
		}
	}
}
