// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"strings"
	"testing"
)

// Each form that the list of kinds has is taken, and only these are.
func TestLinksTakeTheFormsOfTheirKinds(t *testing.T) {
	examples := map[string]string{"": "", ":IFNAME": ":wan0", ":PATH": ":/run/wan", ":fd=N": ":fd=7"}
	for _, k := range Kinds {
		forms := map[string]bool{}
		for _, form := range k.Forms {
			rest := strings.TrimPrefix(form, k.Name)
			example, ok := examples[rest]
			if !ok {
				t.Errorf("%s: what stands behind the colon is none of IFNAME, PATH and fd=N", form)
			}
			forms[rest] = true
			l, err := ParseLinks([]string{k.Name + example}, true)
			if err != nil {
				t.Errorf("%s: %v", form, err)
				continue
			}
			got := map[string]string{"": l[0].Device + l[0].Path, ":IFNAME": ":" + l[0].Device, ":PATH": ":" + l[0].Path, ":fd=N": ":fd=7"}
			if l[0].Kind != k.Name || got[rest] != example || (l[0].FD == 7) != (rest == ":fd=N") {
				t.Errorf("%s: %+v", form, l[0])
			}
		}
		for rest, example := range examples {
			if forms[rest] || rest == ":IFNAME" && forms[":PATH"] || rest == ":PATH" && forms[":IFNAME"] || rest == ":fd=N" && forms[":PATH"] {
				continue
			}
			if _, err := ParseLinks([]string{k.Name + example}, true); err == nil || !strings.Contains(err.Error(), k.Forms[0]) {
				t.Errorf("%s%s: %v", k.Name, example, err)
			}
		}
	}
}

func TestAddressesOfEthernetAreForEthernet(t *testing.T) {
	for _, k := range Kinds {
		if k.MTU < MTULeast || k.MTU > k.MTUMost {
			t.Errorf("%s: an MTU of %d", k.Name, k.MTU)
		}
		l := &Link{Kind: k.Name}
		if err := l.SetOption("mac=02:00:00:00:00:01"); (err == nil) != k.Ethernet {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}
