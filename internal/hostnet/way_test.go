// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"testing"

	"guise/internal/plan"
)

func TestWhichLinksAreOurs(t *testing.T) {
	for text, ours := range map[string]bool{
		"tap": true, "tap:guise-u0": true, "passt": true,
		"tap:eth7": false, "tap:fd=7": false, "tun:tun7": false, "tun:fd=7": false,
		"stream:/run/socket": false, "stream:fd=7": false,
		"packet:eth7": false, "packet:fd=7": false, "packet:eth7,ports=auto": true,
	} {
		links, err := plan.ParseLinks([]string{text}, true)
		if err != nil {
			t.Fatal(err)
		}
		if Ours(links[0]) != ours {
			t.Errorf("%s: ours is %v", text, !ours)
		}
	}
	if !Ours(&plan.Link{FD: -1}) {
		t.Error("the one that guise chooses is not ours")
	}
}
