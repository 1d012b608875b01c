// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"guise/internal/suggest"
)

// Path is the stack of `guise path`: it passes packets between two taps, delays them,
// loses some, and limits their rate.
type Path struct {
	Memory uint64
	Forth  Impairment // from A to B
	Back   Impairment // from B to A
	MTU    int        // 0: the default
}

// End is one end of a path: a tap in a network namespace.
type End struct {
	Namespace string // "": the current one
	Device    string
	Addresses []netip.Prefix // of the tap, on the host's side
	Text      string         // what the user wrote
}

func (e End) String() string {
	if e.Namespace == "" {
		return "tap:" + e.Device
	}
	return e.Namespace + ":" + e.Device
}

// PathDevice is the name of the tap in a namespace when the user gives none.
const PathDevice = "path0"

// ParseEnd reads NAMESPACE[:IFNAME] or tap:IFNAME, followed by any number of
// ",ip=ADDR/LEN".
func ParseEnd(text string) (End, error) {
	e := End{Text: text, Device: PathDevice}
	place, options, _ := strings.Cut(text, ",")
	namespace, device, named := strings.Cut(place, ":")
	if namespace != "tap" {
		e.Namespace = namespace
	} else if !named {
		return e, fmt.Errorf("%q: expected tap:IFNAME", text)
	}
	if e.Namespace == "" && namespace != "tap" || strings.ContainsAny(e.Namespace, "/ ") || oneLine(e.Namespace) != nil || e.Namespace == ".." || e.Namespace == "." {
		return e, fmt.Errorf("%q is no end of a path; expected the name of a network namespace, or tap:IFNAME", text)
	}
	if named {
		e.Device = device
	}
	if err := CheckDevice(e.Device); err != nil {
		return e, fmt.Errorf("%s: %w", text, err)
	}
	if options == "" {
		return e, nil
	}
	for _, option := range strings.Split(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		if key != "ip" {
			return e, fmt.Errorf("%s: unknown option %q; %s", text, key, suggest.Hint(key, []string{"ip=ADDR/LEN"}))
		}
		prefix, err := ParseInterfaceAddress(value)
		if err != nil {
			return e, fmt.Errorf("%s: %w", text, err)
		}
		e.Addresses = append(e.Addresses, prefix)
	}
	return e, nil
}

// Plan writes the plan. Links a and b are the ports of a bridge, so that the two ends
// share a subnet and do not notice the stack between them. Packets from A to B leave
// the stack at b, and are impaired there.
//
// Without offloads (offload=off) each frame is one packet: the host segments its
// packets before they reach netem, which decides for each packet whether it is lost,
// and the stack does not merge received packets.
func (r *Path) Plan(firstFD int) *Plan {
	p := &Plan{}
	p.addHead("path", r.Memory, nil)
	// Bridged packets need neither of these; a path that also routes does.
	p.add("", "sysctl net.ipv4.ip_forward 1")
	p.add("", "sysctl net.ipv6.conf.all.forwarding 1")
	options := " offload=off"
	if r.MTU != 0 {
		options += fmt.Sprintf(" mtu=%d", r.MTU)
	}
	p.add("", "link a tap fd=%d%s", firstFD, options)
	p.add("", "link b tap fd=%d%s", firstFD+1, options)
	p.add("", "bridge br0 a b")
	p.add("", "qdisc b %s", r.Forth.Netem())
	p.add("", "qdisc a %s", r.Back.Netem())
	for _, dev := range []string{"a", "b", "br0"} {
		p.add("", "up %s", dev)
	}
	return p
}
