// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"guise/internal/suggest"
)

// Uplink is an interface of the host that is a path of the stack. The stack's interface has the
// same name. The process that follows the host (internal/uplink) reads it as JSON.
type Uplink struct {
	Name string `json:"name"`
	Way  string `json:"way"` // one of Ways

	Ports []PortRange `json:"ports,omitempty"` // share: those of the stack; none: guise chooses

	Addresses []netip.Prefix `json:"addresses,omitempty"` // own: given by hand, at most one a family
	Gateways  []netip.Addr   `json:"gateways,omitempty"`  // own: of these addresses

	Flags  []string `json:"flags,omitempty"`  // of the MPTCP endpoint; none: subflow
	Metric int      `json:"metric,omitempty"` // of the default route; 0: by its place in the list
	MTU    int      `json:"mtu,omitempty"`    // 0: the host's
	Prefer bool     `json:"prefer,omitempty"` // all others are backup
	Budget uint64   `json:"budget,omitempty"` // bytes after which it is backup; 0: none

	Flag  string `json:"-"` // what the user wrote
	Place string `json:"-"` // where, if in a file
}

// The ways in which a stack uses an interface of the host.
const (
	Share     = "share"     // the host's own addresses, with ports that the host does not use
	Own       = "own"       // addresses of the stack's own
	Exclusive = "exclusive" // the host's own addresses, which the host cannot use meanwhile
)

// Ways has the default first.
var Ways = []string{Share, Own, Exclusive}

// MaxUplinks is how many addresses MPTCP knows (MPTCP_PM_ADDR_MAX of Linux).
const MaxUplinks = 8

// UplinkFlags are those of an MPTCP endpoint.
var UplinkFlags = []string{"subflow", "backup", "signal", "fullmesh"}

// PortRange is a range of ports, both ends included.
type PortRange struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
}

func (p PortRange) String() string {
	if p.First == p.Last {
		return fmt.Sprint(p.First)
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

var portRange = regexp.MustCompile(`^([0-9]{1,5})(-([0-9]{1,5}))?$`)

// ParsePorts reads ranges of ports, as in 61000-65535 and 8080.
func ParsePorts(words []string) ([]PortRange, error) {
	var all []PortRange
	for _, word := range words {
		m := portRange.FindStringSubmatch(word)
		if m == nil {
			return nil, fmt.Errorf("%q is no range of ports; expected one as in 61000-65535 or 8080", word)
		}
		first, err1 := strconv.ParseUint(m[1], 10, 16)
		last, err2 := strconv.ParseUint(cmp.Or(m[3], m[1]), 10, 16)
		if err1 != nil || err2 != nil || first == 0 || last < first {
			return nil, fmt.Errorf("%q is no range of ports; expected a lower and a higher number from 1 to 65535", word)
		}
		p := PortRange{uint16(first), uint16(last)}
		for _, other := range all {
			if p.First <= other.Last && other.First <= p.Last {
				return nil, fmt.Errorf("the ports %s and %s overlap; expected each port once", other, p)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// FormatPorts writes ranges as ParsePorts reads them, with commas.
func FormatPorts(ports []PortRange) string {
	var words []string
	for _, p := range ports {
		words = append(words, p.String())
	}
	return strings.Join(words, ",")
}

// NewUplink returns the uplink of that name, with the defaults.
func NewUplink(name, flag, place string) (*Uplink, error) {
	if err := CheckDevice(name); err != nil {
		return nil, err
	}
	if name == "lo" {
		return nil, fmt.Errorf("lo leads to no network; expected an interface with a way out (host.guise.internal is the host's localhost)")
	}
	return &Uplink{Name: name, Way: Share, Flag: flag, Place: place}, nil
}

var uplinkOptions = slices.Concat(Ways, UplinkFlags, []string{"ports=", "address=", "gateway=", "metric=", "mtu="})

// ParseUplink reads the value of an --uplink: IFNAME[,OPTION...]. A list of ports has commas, too:
// what follows and is a number or a range belongs to it.
func ParseUplink(text string) (*Uplink, error) {
	words := strings.Split(text, ",")
	u, err := NewUplink(words[0], "--uplink "+text, "")
	if err != nil {
		return nil, err
	}
	var way string
	for i := 1; i < len(words); i++ {
		key, value, valued := strings.Cut(words[i], "=")
		switch {
		case slices.Contains(Ways, words[i]):
			if way != "" && way != words[i] {
				return nil, fmt.Errorf("%s: %s and %s exclude each other; expected one of %s", text, way, words[i], strings.Join(Ways, ", "))
			}
			way = words[i]
		case slices.Contains(UplinkFlags, words[i]):
			u.Flags = append(u.Flags, words[i])
		case valued && key == "ports":
			ranges := []string{value}
			for i+1 < len(words) && portRange.MatchString(words[i+1]) {
				i++
				ranges = append(ranges, words[i])
			}
			if u.Ports, err = ParsePorts(ranges); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		case valued && (key == "address" || key == "gateway" || key == "metric" || key == "mtu"):
			if err := u.SetOption(key, value); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		default:
			return nil, fmt.Errorf("unknown uplink option %q; %s", words[i], suggest.Hint(words[i], uplinkOptions))
		}
	}
	return u, u.SetWay(way)
}

// SetOption reads an option that has a value.
func (u *Uplink) SetOption(key, value string) error {
	switch key {
	case "address":
		prefix, err := ParseInterfaceAddress(value)
		if err != nil {
			return err
		}
		for _, other := range u.Addresses {
			if other.Addr().Is4() == prefix.Addr().Is4() {
				return fmt.Errorf("%s is a second address beside %s; expected one for each of IPv4 and IPv6", prefix, other)
			}
		}
		u.Addresses = append(u.Addresses, prefix)
	case "gateway":
		gateway, err := netip.ParseAddr(value)
		if err != nil || gateway.Zone() != "" || gateway.IsUnspecified() || gateway.IsMulticast() {
			return fmt.Errorf("%q is no address of a gateway; expected one as in 192.0.2.1 or 2001:db8::1", value)
		}
		u.Gateways = append(u.Gateways, gateway)
	case "metric":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<30 {
			return fmt.Errorf("metric=%s; expected a number from 1 on (the lowest is used first)", value)
		}
		u.Metric = n
	case "mtu":
		n, err := strconv.Atoi(value)
		if err != nil || n < 576 || n > 65535 {
			return fmt.Errorf("mtu=%s; expected a number from 576 to 65535", value)
		}
		u.MTU = n
	}
	return nil
}

// SetWay sets the way, or finds it if it is "", when all other options are set, and checks that they
// fit each other.
func (u *Uplink) SetWay(way string) error {
	switch {
	case way != "":
		u.Way = way
	case len(u.Addresses)+len(u.Gateways) > 0:
		u.Way = Own
	}
	if !slices.Contains(Ways, u.Way) {
		return fmt.Errorf("unknown way %q; %s", u.Way, suggest.Hint(u.Way, Ways))
	}
	if len(u.Ports) > 0 && u.Way != Share {
		return fmt.Errorf("%s: ports are for %s, where the host has the others; with %s all ports are the stack's", u.Name, Share, u.Way)
	}
	if len(u.Addresses) > 0 && u.Way != Own {
		return fmt.Errorf("%s: an address is for %s; with %s the stack has the host's", u.Name, Own, u.Way)
	}
	for i, g := range u.Gateways {
		reached := g.Is6() && g.IsLinkLocalUnicast()
		for _, a := range u.Addresses {
			if a.Addr() == g {
				return fmt.Errorf("%s: %s is the stack's own address; expected the address of the router beside it", u.Name, g)
			}
			reached = reached || a.Contains(g)
		}
		if !reached {
			return fmt.Errorf("%s: the gateway %s is on no network of the stack's; expected an address inside %s",
				u.Name, g, joinPrefixes(u.Addresses))
		}
		for _, other := range u.Gateways[:i] {
			if other.Is4() == g.Is4() {
				return fmt.Errorf("%s: %s is a second gateway beside %s; expected one for each of IPv4 and IPv6", u.Name, g, other)
			}
		}
	}
	if slices.Contains(u.Flags, "signal") && slices.Contains(u.Flags, "fullmesh") {
		return fmt.Errorf("%s: Linux has no endpoint that is signal and fullmesh; expected one of them", u.Name)
	}
	slices.Sort(u.Flags)
	u.Flags = slices.Compact(u.Flags)
	return nil
}

// EndpointFlags are those of the uplink's endpoint; backup: it is used only when no other path is
// left.
func (u *Uplink) EndpointFlags(backup bool) []string {
	flags := slices.DeleteFunc(slices.Clone(u.Flags), func(f string) bool { return f == "backup" })
	if !slices.Contains(flags, "subflow") && !slices.Contains(flags, "signal") {
		flags = append(flags, "subflow")
	}
	if backup {
		flags = append(flags, "backup")
	}
	slices.Sort(flags)
	return flags
}

// Origin returns what the user wrote.
func (u *Uplink) Origin() string { return cmp.Or(u.Place, u.Flag) }

// CheckUplinks checks what several uplinks need of each other.
func CheckUplinks(all []*Uplink) error {
	if len(all) > MaxUplinks {
		return fmt.Errorf("%d uplinks are too many; MPTCP knows %d addresses, so a stack has at most %d", len(all), MaxUplinks, MaxUplinks)
	}
	seen := map[string]bool{}
	owners := map[netip.Addr]string{}
	var ports *Uplink
	prefer := ""
	for _, u := range all {
		if seen[u.Name] {
			return fmt.Errorf("%s is named twice; expected each interface once", u.Name)
		}
		seen[u.Name] = true
		for _, a := range u.Addresses {
			if other := owners[a.Addr()]; other != "" {
				return fmt.Errorf("%s and %s have one address, %s; expected one of its own for each path", other, u.Name, a.Addr())
			}
			owners[a.Addr()] = u.Name
		}
		if u.Prefer {
			prefer = u.Name
		}
		if u.Way != Share || len(u.Ports) == 0 {
			continue
		}
		// connect() chooses the port before the path: they are the stack's, whatever the path.
		if ports != nil && !slices.Equal(ports.Ports, u.Ports) {
			return fmt.Errorf("%s has ports=%s and %s ports=%s; a stack has the same ports on all its paths, so expected them once",
				ports.Name, FormatPorts(ports.Ports), u.Name, FormatPorts(u.Ports))
		}
		ports = u
	}
	metrics := map[int]string{}
	for i, u := range all {
		if other := metrics[MetricOf(all, i)]; other != "" {
			return fmt.Errorf("%s and %s have one metric, %d; expected one of its own for each", other, u.Name, MetricOf(all, i))
		}
		metrics[MetricOf(all, i)] = u.Name
	}
	for _, u := range all {
		if u.Metric != 0 && prefer != "" {
			return fmt.Errorf("%s has a metric, and %s is preferred, which decides the metrics; expected one of them", u.Name, prefer)
		}
	}
	return nil
}

// MetricOf is the metric of the default route of uplink i.
func MetricOf(all []*Uplink, i int) int {
	switch u := all[i]; {
	case u.Metric != 0:
		return u.Metric
	case u.Prefer:
		return 1
	}
	return UplinkTable(i)
}

// UplinkTable is the table of routes of uplink i: any number except those that Linux uses itself
// (253 to 255).
func UplinkTable(i int) int { return 100 + i }

// Prefer makes that uplink the preferred one.
func Prefer(all []*Uplink, name string) error {
	u, err := findUplink(all, name)
	if err != nil {
		return err
	}
	u.Prefer = true
	return nil
}

// SetBudget reads IFNAME=SIZE.
func SetBudget(all []*Uplink, text string) error {
	name, size, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q has no size; expected IFNAME=SIZE, as in wwan0=200MB", text)
	}
	u, err := findUplink(all, name)
	if err != nil {
		return err
	}
	u.Budget, err = ParseBudget(size)
	return err
}

// ParseBudget reads a number of bytes.
func ParseBudget(text string) (uint64, error) {
	n, ok := parseSize(text)
	if !ok || n == 0 {
		return 0, fmt.Errorf("%q is no size; expected a number of bytes, or one as in 200MB or 5G", text)
	}
	return n, nil
}

func findUplink(all []*Uplink, name string) (*Uplink, error) {
	var names []string
	for _, u := range all {
		if u.Name == name {
			return u, nil
		}
		names = append(names, u.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%q is no uplink of the stack, which has none; expected it in an --uplink, too", name)
	}
	return nil, fmt.Errorf("%q is no uplink of the stack; valid are %s", name, strings.Join(names, ", "))
}

// SharedPorts are those that the user named for a stack that shares addresses of the host; shares: it
// does.
func SharedPorts(all []*Uplink) (ports []PortRange, shares bool) {
	for _, u := range all {
		if u.Way == Share {
			shares = true
			if len(u.Ports) > 0 {
				ports = u.Ports
			}
		}
	}
	return ports, shares
}

// Follow has what the holder starts to follow the host's interfaces.
type Follow struct {
	Program string
	Sysctls []Sysctl // that the ports of the stack need
	Opener  bool     // something with rights opens the uplinks (internal/uplink/opener)
}

// NewFollow refuses a path with blanks.
func NewFollow(program string) (*Follow, error) {
	if err := checkPaths(program); err != nil {
		return nil, err
	}
	return &Follow{Program: program}, nil
}

// addSysctls writes what has to be set before there is an uplink. New connections pass over a path
// without carrier. What routers and neighbours say, the follower says to the stack.
func (f *Follow) addSysctls(p *Plan) {
	for _, s := range []string{
		"net.ipv4.conf.all.ignore_routes_with_linkdown 1",
		"net.ipv6.conf.all.ignore_routes_with_linkdown 1",
		"net.ipv4.conf.all.promote_secondaries 1",
		"net.ipv4.conf.default.arp_announce 2",
		"net.ipv6.conf.default.accept_ra 0",
		"net.ipv6.conf.default.addr_gen_mode 1",
	} {
		p.add("", "sysctl %s", s)
	}
	for _, s := range f.Sysctls {
		p.add("", "sysctl %s %s", s.Key, s.Value)
	}
}
