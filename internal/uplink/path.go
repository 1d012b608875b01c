// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"guise/internal/plan"
)

// State is what an uplink is at the moment.
//
//	         ┌────────── the interface goes ──────────┐
//	         ▼                                        │
//	     ┌────────┐   it comes    ┌─────────┐         │
//	───► │ absent ├─────────────► │ present ├─────────┘
//	     └────────┘               └────┬────┘
//	                                   │ it is up and has a carrier, an address and a way out
//	                                   ▼
//	     ┌────────┐  one of these ┌─────────┐
//	     │  lost  │ ◄──────────── │ usable  │
//	     │        ├─────────────► │         │
//	     └────────┘   all again   └─────────┘
//
// An uplink that is absent or present is not in the stack, or has no address there. One that is usable is
// there with all it has, as a path of MPTCP. One that is lost keeps its link and, while the host has
// them, its addresses, so that plain TCP connections can go on when it returns; but it has no carrier, if
// that is what was lost, and is no endpoint of MPTCP.
type State string

// The states.
const (
	Absent  State = "absent"
	Present State = "present"
	Usable  State = "usable"
	Lost    State = "lost"
)

// path is one uplink.
type path struct {
	*plan.Uplink
	place int // in the list of uplinks

	state State
	why   string // it is not usable, or ""

	device *device // as it was last seen, also when it is gone
	gone   bool
	link   *link   // nil: it is not in the stack
	old    []*link // earlier ones, until the stack has given them up

	retiring bool     // the link is about to be replaced
	leased   *granted // own, without addresses by hand: what the network has given so far

	others map[netip.Addr]string // addresses that no network gives to this uplink, as another one has them

	routed map[bool]bool // by IPv4: whether it has had a default route
	spent  bool          // the budget

	broken string // why the stack did not take it
	retry  time.Time
	pause  time.Duration
}

// granted is what the stack has of its own on an uplink.
type granted struct {
	addresses []netip.Prefix
	gateways  []gateway
	onLink    []netip.Prefix
	mtu       int
	servers   []netip.Addr // of names
	trouble   string
}

func newPath(u *plan.Uplink, place int) *path {
	return &path{Uplink: u, place: place, state: Absent, why: "there is no such interface", gone: true, routed: map[bool]bool{}}
}

// see takes what the host has now; nil: no such interface. taken has the addresses of other uplinks.
func (p *path) see(d *device, taken map[netip.Addr]string) {
	p.gone = d == nil
	if d != nil {
		p.device = d
	}
	p.why = p.judge(taken)
	switch {
	case p.why == "":
		p.state = Usable
		for _, a := range p.addresses() {
			taken[a.Addr()] = p.Name
		}
		for _, four := range []bool{true, false} {
			if _, ok := p.gateway(four); ok {
				p.routed[four] = true
			}
		}
	case p.state == Usable || p.state == Lost:
		p.state = Lost
	case p.gone:
		p.state = Absent
	default:
		p.state = Present
	}
}

// judge returns why the uplink is not usable, or "".
func (p *path) judge(taken map[netip.Addr]string) string {
	if why := p.unfit(); why != "" {
		return why
	}
	switch {
	case p.broken != "":
		return p.broken
	case p.Way == plan.Own && p.leased == nil:
		return "the network has given it no address yet"
	case p.Way == plan.Own && len(p.leased.addresses) == 0 && p.leased.trouble != "":
		return p.leased.trouble
	case len(p.addresses()) == 0 && p.Way == plan.Own:
		for _, a := range p.leased.addresses {
			return fmt.Sprintf("the network gives it the address %s, which %s has", a.Addr(), p.others[a.Addr()])
		}
		return "the network has given it no address yet"
	case len(p.addresses()) == 0:
		return "it has no address"
	}
	for _, a := range p.addresses() {
		if other := taken[a.Addr()]; other != "" {
			return fmt.Sprintf("it has the address %s, as %s has", a.Addr(), other)
		}
	}
	// An uplink that never had a default route reaches its own network. One whose default route is gone
	// reaches no longer what it did.
	if len(p.routed) == 0 {
		return ""
	}
	for four := range p.routed {
		if _, ok := p.gateway(four); ok && p.has(four) {
			return ""
		}
	}
	return "its default route is gone"
}

// learns reports whether a network says which addresses the uplink has.
func (p *path) learns() bool { return p.Way == plan.Own && len(p.Addresses) == 0 }

// unfit returns what is wrong with the interface itself.
func (p *path) unfit() string {
	switch d := p.device; {
	case p.gone && d == nil:
		return "there is no such interface"
	case p.gone:
		return "the interface is gone"
	case !d.up:
		return "it is down"
	case !d.carrier:
		return "it has no carrier"
	case d.master != 0:
		return "it is a port of a bridge or bond, whose addresses are on that"
	}
	return ""
}

// addresses are those of the stack on the uplink.
func (p *path) addresses() []netip.Prefix {
	switch {
	case p.Way == plan.Own && p.leased != nil:
		return slices.DeleteFunc(slices.Clone(p.leased.addresses), func(a netip.Prefix) bool {
			other := p.others[a.Addr()]
			return other != "" && other != p.Name
		})
	case p.Way == plan.Own || p.device == nil:
		return nil
	}
	return p.device.addresses
}

func (p *path) has(four bool) bool {
	return slices.ContainsFunc(p.addresses(), func(a netip.Prefix) bool { return a.Addr().Is4() == four })
}

func (p *path) gateway(four bool) (gateway, bool) {
	var all []gateway
	switch {
	case p.Way == plan.Own && p.leased != nil:
		all = p.leased.gateways
	case p.Way != plan.Own && p.device != nil:
		all = p.device.gateways
	}
	i := slices.IndexFunc(all, func(g gateway) bool { return g.four == four })
	if i < 0 {
		return gateway{}, false
	}
	return all[i], true
}

func (p *path) onLink() []netip.Prefix {
	switch {
	case p.Way == plan.Own && p.leased != nil:
		return p.leased.onLink
	case p.Way == plan.Own || p.device == nil:
		return nil
	}
	return p.device.onLink
}

func (p *path) mtu() int {
	mtu := p.device.mtu
	if p.leased != nil && p.leased.mtu != 0 {
		mtu = min(mtu, p.leased.mtu)
	}
	if p.MTU != 0 {
		mtu = min(mtu, p.MTU)
	}
	if kind := plan.KindOf(p.link.kind); kind != nil {
		mtu = min(mtu, kind.MTUMost)
	}
	return mtu
}

// backup reports whether the path is used only when no other one is left.
func (p *path) backup(preferred bool) bool {
	return slices.Contains(p.Flags, "backup") || p.spent || preferred && !p.Prefer
}

// wanted are the lines that the stack is to have. mptcp: with endpoints.
func wanted(paths []*path, mptcp bool) (lines []line) {
	preferred := false
	var settings []*plan.Uplink
	for _, p := range paths {
		preferred = preferred || p.Prefer
		settings = append(settings, p.Uplink)
	}
	for i, p := range paths {
		lines = append(lines, p.lines(plan.MetricOf(settings, i))...)
	}
	if !mptcp {
		return lines
	}
	// Linux knows eight addresses. So each path has an endpoint before one has a second.
	endpoints := 0
	for _, four := range []bool{true, false} {
		for _, p := range paths {
			i := slices.IndexFunc(p.addresses(), func(a netip.Prefix) bool { return a.Addr().Is4() == four })
			if p.state != Usable || p.link == nil || p.retiring || i < 0 || endpoints == plan.MaxUplinks {
				continue
			}
			if _, ok := p.gateway(four); p.routed[four] && !ok {
				continue
			}
			endpoints++
			lines = append(lines, line{path: p.place, text: fmt.Sprintf("mptcp endpoint %s dev %s %s",
				p.addresses()[i].Addr(), p.Name, strings.Join(p.EndpointFlags(p.backup(preferred)), " "))})
		}
	}
	return lines
}

// lines are those of one path, without its endpoints.
func (p *path) lines(metric int) (lines []line) {
	if p.link == nil || p.broken != "" {
		return nil
	}
	add := func(format string, args ...any) {
		lines = append(lines, line{text: fmt.Sprintf(format, args...), path: p.place})
	}
	add("link %s %s", p.Name, p.link.kind)
	lines[0].link = p.link
	for _, s := range p.link.settings {
		add("sysctl %s", s)
	}
	add("mtu %s %d", p.Name, p.mtu())
	if p.link.local.IsValid() {
		add("address %s %s", p.Name, p.link.local)
	}
	for _, a := range p.addresses() {
		add("address %s %s", p.Name, a)
	}
	add("up %s", p.Name)
	lines = append(lines, p.carrier())
	for _, four := range []bool{true, false} {
		if p.has(four) {
			p.routes(four, metric, add)
		}
	}
	for _, a := range p.addresses() {
		add("rule from %s/%d table %d", a.Addr(), a.Addr().BitLen(), plan.UplinkTable(p.place))
	}
	return lines
}

// carrier is the line of the path's carrier.
func (p *path) carrier() line {
	state := "on"
	if p.gone || !p.device.up || !p.device.carrier {
		state = "off"
	}
	return line{text: fmt.Sprintf("carrier %s %s", p.Name, state), path: p.place}
}

// routes adds those of a family: the same ones twice, in the main table for all that is sent, and in one of
// the path's own for what is sent from its addresses.
func (p *path) routes(four bool, metric int, add func(string, ...any)) {
	table := plan.UplinkTable(p.place)
	// The stack's kernel makes the routes to the networks of the addresses itself, in the main table.
	var made, networks []netip.Prefix
	for _, a := range p.addresses() {
		if a.Addr().Is4() == four && a.Bits() < a.Addr().BitLen() && !slices.Contains(made, a.Masked()) {
			made = append(made, a.Masked())
		}
	}
	networks = slices.Clone(made)
	for _, n := range p.onLink() {
		if n.Addr().Is4() == four && !slices.Contains(networks, n) {
			networks = append(networks, n)
		}
	}
	g, routed := p.gateway(four)
	if routed && g.address.IsValid() && !(g.address.Is6() && g.address.IsLinkLocalUnicast()) &&
		!slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(g.address) }) {
		networks = append(networks, netip.PrefixFrom(g.address, g.address.BitLen()))
	}
	for _, n := range networks {
		if !slices.Contains(made, n) {
			add("route %s dev %s metric %d", n, p.Name, metric)
		}
		add("route %s dev %s table %d", n, p.Name, table)
	}
	if !routed {
		return
	}
	to := "default dev " + p.Name
	switch {
	case g.address.IsValid():
		to = fmt.Sprintf("default via %s dev %s", g.address, p.Name)
	case !four:
		to = "::/0 dev " + p.Name
	}
	add("route %s metric %d", to, metric)
	add("route %s table %d", to, table)
}
