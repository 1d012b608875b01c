// SPDX-License-Identifier: GPL-2.0-only

package share

import "fmt"

// Setting is a sysctl of the stack.
type Setting struct{ Key, Value string }

// StackSettings are what a stack with these ports needs: it chooses its ports, and the ids of pings,
// from the ports that are its own.
func StackSettings(p Ports) []Setting {
	span, holes := p.Span()
	// Linux complains of ends that are both even or both odd.
	if span.First%2 == span.Last%2 {
		span.Last--
	}
	settings := []Setting{
		{"net.ipv4.ip_local_port_range", fmt.Sprintf("%d %d", span.First, span.Last)},
		// ping then takes a socket that has an id from the stack, instead of choosing one.
		{"net.ipv4.ping_group_range", "0 2147483647"},
	}
	if len(holes) > 0 {
		settings = append(settings, Setting{"net.ipv4.ip_local_reserved_ports", holes.String()})
	}
	return settings
}

// LinkSettings are what an interface of the stack needs that has addresses of the host: the host
// alone answers for them. No question reaches the stack; these keep it from asking and telling.
func LinkSettings(inside string) []Setting {
	four, six := "net.ipv4.conf."+inside, "net.ipv6.conf."+inside
	return []Setting{
		{four + ".arp_ignore", "8"},
		{four + ".arp_announce", "2"},
		{six + ".accept_dad", "0"},
		{six + ".dad_transmits", "0"},
		{six + ".accept_ra", "0"},
		{six + ".router_solicitations", "0"},
	}
}
