// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"regexp"
	"strings"
	"testing"

	"guise/internal/holder"
	"guise/internal/uplink"
)

// Links come in the stack's order, uplinks by name.
func TestEachLinkIsListedWithItsOwnBytes(t *testing.T) {
	stack := listed{Stack: "7", Status: &holder.Status{Links: []holder.LinkStatus{
		{Name: "wlan0", Kind: "packet", TxBytes: 100, RxBytes: 200},
		{Name: "eth0", Kind: "tap", TxBytes: 300, RxBytes: 400},
	}}, Uplinks: []uplink.Status{{Name: "usb0", State: "absent"}, {Name: "wlan0", State: "usable"}}}
	var out strings.Builder
	if err := tabulate(&out, []listed{stack}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`wlan0 \(usable\),tap:eth0,usb0 \(absent\) +\? +400B +600B`,
		`\n +wlan0 \(usable\) +100B +200B`, `\n +tap:eth0 +300B +400B`,
	} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", line, out.String())
		}
	}
}
