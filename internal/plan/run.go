// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Run is the stack of a `guise run` or of a config.
type Run struct {
	Name    string
	Memory  uint64
	Kernel  string // the image's file beside the holder; "": guise-kernel
	CC      string // "": the stack's default
	MPTCP   bool
	Sysctls []Sysctl
	Links   []*Link
	Netem   string // "": none
	// Privileges are one of Privileges, or "": everything.
	Privileges string
	// User is whose the stack is, "": who starts it.
	User string
	// Served programs have their calls made by another process.
	Served bool
	// SetUp: a program sets the stack up before it is kept, and may do everything until then.
	SetUp bool
	Undo  *Undo
	Held  int // how many descriptors only have to stay open

	Routes    []Route
	Rules     []Rule
	Endpoints []Endpoint
	Limits    *Limits // nil: those that MPTCP needs

	Relays       []Relay
	Resolvers    []Resolver
	Hosts        []Host
	Publications []*Publication

	Guests  *Guests  // nil: the program is a member
	Control *Control // nil: no command can reach it
	Follow  *Follow  // nil: no interface of the host is followed; else Control is not nil

	// Origin returns what the user wrote for a setting, by its name in a config. nil: the
	// settings are flags.
	Origin func(key, value string) string
}

// FlagOrigin returns the flag of a setting, with its value unless that is "".
func FlagOrigin(key, value string) string {
	flag, _, _ := strings.Cut(key, ".")
	return strings.TrimSpace("--" + flag + " " + value)
}

func (r *Run) origin(key, value string) string {
	if r.Origin == nil {
		return FlagOrigin(key, value)
	}
	return r.Origin(key, value)
}

// Control is how commands reach the stack.
type Control struct {
	Path, Name string            // paths of the socket, and of the symbolic link to it, or ""
	Told       map[string]string // what the holder tells commands, as words of a plan
}

// NewControl refuses paths with blanks.
func NewControl(path, name string) (*Control, error) {
	if err := checkPaths(path, name); err != nil {
		return nil, err
	}
	return &Control{Path: path, Name: name, Told: map[string]string{}}, nil
}

// Plan writes the plan. In the holder, the descriptor of link i has the number
// firstFD + i. The sockets of published ports follow, then the control socket, the
// descriptors for guests, those of the follower (its config, its report, and what opens uplinks for it), and last those
// that only have to stay open.
//
// Sysctls come before the links, so that those for new interfaces
// (net.ipv4.conf.default) hold for the links. Those of one interface come last,
// because the interface must exist.
func (r *Run) Plan(firstFD int) *Plan {
	p := &Plan{}
	p.addHead(r.Name, r.Memory, r.Undo, r.addControl(firstFD+len(r.Links)+len(r.Publications))...)

	switch {
	case r.Privileges != "host":
	case r.SetUp:
		p.add(r.origin("privileges", r.Privileges), "privileges kept")
	default:
		p.add(r.origin("privileges", r.Privileges), "privileges host")
	}
	if r.User != "" {
		p.add(r.origin("user", r.User), "user %s", r.User)
	}
	if r.Served {
		p.add(r.origin("served", ""), "served")
	}
	if r.CC != "" {
		p.add(r.origin("cc", r.CC), "sysctl net.ipv4.tcp_congestion_control %s", r.CC)
	}
	if r.MPTCP {
		p.add(r.origin("mptcp.enabled", ""), "sysctl net.mptcp.enabled 1")
	}
	for _, l := range r.Links {
		if l.Window != 0 {
			p.add("", "sysctl net.ipv4.tcp_rmem 4096 131072 %d", l.Window)
		}
	}
	if r.Follow != nil {
		r.Follow.addSysctls(p)
	}
	var late []Sysctl
	for _, s := range r.Sysctls {
		if r.namesLink(s) {
			late = append(late, s)
			continue
		}
		p.add(r.origin("sysctl."+s.Key, s.String()), "sysctl %s %s", s.Key, s.Value)
	}
	if r.Guests != nil {
		r.Guests.addForwarding(p)
	}
	for i, l := range r.Links {
		l.addTo(p, firstFD+i)
	}
	r.addRoutes(p)
	r.addMoreRoutes(p)
	for _, s := range late {
		p.add(r.origin("sysctl."+s.Key, s.String()), "sysctl %s %s", s.Key, s.Value)
	}
	if r.Netem != "" {
		for _, l := range r.Links {
			p.add(r.origin("netem", r.Netem), "qdisc %s netem %s", l.Inside, r.Netem)
		}
	}
	for _, l := range r.Links {
		if l.Qdisc != "" {
			p.add(l.origin("qdisc"), "qdisc %s %s", l.Inside, l.Qdisc)
		}
	}
	r.addMPTCP(p)
	for _, relay := range r.Relays {
		p.add(relay.Flag, "relay %s %s", relay.From, relay.To)
	}
	r.addNames(p)
	for i, publication := range r.Publications {
		p.add(publication.Flag, "publish fd=%d %s %d", firstFD+len(r.Links)+i, publication.Protocol(), publication.Port)
	}
	fd := firstFD + len(r.Links) + len(r.Publications)
	if r.Control != nil {
		fd++
	}
	if r.Guests != nil {
		fd += r.Guests.addTo(p, fd, r.MPTCP)
	}
	if r.Follow != nil {
		fd += 2
		if r.Follow.Opener {
			fd++
		}
	}
	for i := range r.Held {
		p.add("", "hold fd=%d", fd+i)
	}
	return p
}

// addControl returns the lines about the holder itself, and about the image that it needs.
func (r *Run) addControl(fd int) (lines []string) {
	if r.Kernel != "" {
		lines = append(lines, "kernel "+r.Kernel)
	}
	if r.Control != nil {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("control fd=%d %s %s", fd, r.Control.Path, r.Control.Name)))
		for _, key := range slices.Sorted(maps.Keys(r.Control.Told)) {
			lines = append(lines, fmt.Sprintf("tell %s=%s", key, r.Control.Told[key]))
		}
	}
	if r.Follow != nil {
		fd++
		if r.Guests != nil {
			fd += 2
		}
		line := fmt.Sprintf("follow %s fd=%d fd=%d", r.Follow.Program, fd, fd+1)
		if r.Follow.Opener {
			line += fmt.Sprintf(" fd=%d", fd+2)
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *Run) namesLink(s Sysctl) bool {
	for _, l := range r.Links {
		if s.names(l.Inside) {
			return true
		}
	}
	return false
}

// addRoutes makes the first gateway of IPv4 and of IPv6 the default route. Each further
// gateway is for packets that are sent from its own link's addresses: a second path for
// MPTCP, or for a program that binds a socket.
func (r *Run) addRoutes(p *Plan) {
	given := map[bool]bool{} // by Is4
	for i, l := range r.Links {
		for _, all := range l.Whole {
			if !given[all.Addr().Is4()] {
				given[all.Addr().Is4()] = true
				p.add(l.Flag, "route %s dev %s", all, l.Inside)
			}
		}
		for _, g := range l.Gateways {
			flag := l.origin("--gateway " + g.String())
			if !given[g.Is4()] {
				given[g.Is4()] = true
				p.add(flag, "route default via %s dev %s", g, l.Inside)
				continue
			}
			// Any number except those that Linux uses itself (253 to 255).
			table := 100 + i
			p.add(flag, "route default via %s dev %s table %d", g, l.Inside, table)
			for _, a := range l.Addresses {
				if a.Addr().Is4() == g.Is4() {
					p.add(flag, "rule from %s table %d", netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), table)
				}
			}
		}
	}
}

// addMPTCP writes which addresses are paths, and how many paths there may be.
func (r *Run) addMPTCP(p *Plan) {
	switch {
	case r.Limits != nil:
		p.add(r.origin("mptcp", ""), "mptcp limits %d %d", r.Limits.AcceptAddAddr, r.Limits.Subflows)
	case r.MPTCP && (len(r.Links) > 1 || len(r.Endpoints) > 0 || r.Follow != nil):
		p.add(r.origin("mptcp.enabled", ""), "mptcp limits 8 8")
	}
	for _, e := range r.Endpoints {
		p.add(e.Origin, "mptcp endpoint %s dev %s %s", e.Address, e.Link, strings.Join(e.Flags, " "))
	}
	if r.MPTCP && len(r.Endpoints) == 0 {
		r.addSubflows(p)
	}
}

// addSubflows makes every address except those of the first link another path of each
// MPTCP connection. Linux accepts at most 8.
func (r *Run) addSubflows(p *Plan) {
	for _, l := range r.Links[min(1, len(r.Links)):] {
		for _, a := range l.Addresses {
			p.add(r.origin("mptcp.enabled", ""), "mptcp endpoint %s dev %s subflow", a.Addr(), l.Inside)
		}
	}
}

// CheckNetem refuses a --netem that cannot be one line of a plan. The holder checks its
// words.
func CheckNetem(spec string) error { return oneLine(spec) }
