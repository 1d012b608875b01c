// SPDX-License-Identifier: GPL-2.0-only

package opener

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"guise/internal/hostnet/share"
	"guise/internal/plan"
)

var requests = map[string]request{
	"1 ports":                        {seq: 1, verb: verbPorts},
	"2 ports 61000-61999":            {seq: 2, verb: verbPorts, ports: share.Ports{{First: 61000, Last: 61999}}},
	"3 ports 8080,1024-1124,1125":    {seq: 3, verb: verbPorts, ports: share.Ports{{First: 1024, Last: 1125}, {First: 8080, Last: 8080}}},
	"18446744073709551615 open usb0": {seq: 1<<64 - 1, verb: verbOpen, name: "usb0"},
	"5 close enp0s31f6.100":          {seq: 5, verb: verbClose, name: "enp0s31f6.100"},
	"6 addresses wlan0":              {seq: 6, verb: verbAddresses, name: "wlan0"},
	"7 addresses wlan0 192.0.2.7 2001:db8::7": {seq: 7, verb: verbAddresses, name: "wlan0",
		addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}},
}

var wrong = []string{"", " ", "1", "ports", "0 ports", "-1 ports", "+1 ports", "18446744073709551616 ports", "1  ports", "1 ports ", "1 ports\n", "1 ports\x00",
	"1 \xff\xfe", "1 ports 0", "1 ports 1023", "1 ports 80-2000", "1 ports 2000-1999", "1 ports 1024-65535", "1 ports 65536", "1 ports ,", "1 ports 2000 3000",
	"1 open", "1 open a/b", "1 open ..", "1 open wlan0 usb0", "1 open " + strings.Repeat("a", 16), "1 close", "1 addresses", "1 addresses wlan0 x",
	"1 addresses wlan0 fe80::1%wlan0", "1 addresses wlan0 ::ffff:192.0.2.1", "1 dance wlan0", "1 OPEN wlan0", strings.Repeat("1", 5000),
	"1 ports " + strings.Repeat("2000,", 64) + "2000", "1 addresses wlan0" + strings.Repeat(" 192.0.2.1", 65)}

func TestRequestsAreRead(t *testing.T) {
	for text, want := range requests {
		if got, err := parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; expected %+v", text, got, err, want)
		}
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	for _, text := range wrong {
		if r, err := parse([]byte(text)); err == nil {
			t.Errorf("%.60q is read as %+v", text, r)
		}
	}
}

// Whatever is read is within the bounds, and is the same when it is written and read again.
func FuzzRequest(f *testing.F) {
	for text := range requests {
		f.Add([]byte(text))
	}
	for _, text := range wrong {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		r, err := parse(message)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' }) {
				t.Errorf("%q is answered by %q", message, err)
			}
			return
		}
		words := []string{fmt.Sprint(r.seq), r.verb}
		switch {
		case r.seq == 0:
			t.Error("a request without a number")
		case r.verb == verbPorts:
			if len(r.ports) > mostRanges || r.ports.Count() > mostPorts || len(r.ports) > 0 && r.ports[0].First < leastPort || r.name != "" {
				t.Errorf("%q: %+v", message, r)
			}
			if len(r.ports) > 0 {
				words = append(words, r.ports.String())
			}
		case plan.CheckDevice(r.name) != nil || len(r.addresses) > mostAddresses || len(r.addresses) > 0 && r.verb != verbAddresses:
			t.Errorf("%q: %+v", message, r)
		default:
			words = append(words, r.name)
			for _, a := range r.addresses {
				words = append(words, a.String())
			}
		}
		again, err := parse([]byte(strings.Join(words, " ")))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q is %+v, and that is read as %+v, %v", message, r, again, err)
		}
	})
}
