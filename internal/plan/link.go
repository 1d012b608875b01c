// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"guise/internal/suggest"
)

// Link is one network interface of the stack, and what its other end is.
type Link struct {
	Inside  string // its name in the stack: eth0, eth1, ...
	Kind    string // "" until it is known what this user may have
	Device  string // tap, tun: the name on the host; "" if FD is given, or guise has to make one
	Path    string // stream: of the socket; "" if FD is given
	FD      int    // an open descriptor that guise inherited, or -1
	MAC     string // of the stack's side; "": the holder chooses
	MTU     int    // 0: the default
	Window  int    // the largest receive buffer of a TCP socket, in bytes; 0: Linux's own
	Offload bool   // segmentation and checksums may be left to the other side
	Ports   string // packet: the stack has the host's addresses, with these ports; "": it has the interface alone

	Addresses []netip.Prefix // of the stack, on this interface
	Gateways  []netip.Addr   // of its default routes; at most one a family

	// What hostnet finds out about an interface of the host.
	Raw     bool           // packets have no Ethernet header
	Whole   []netip.Prefix // 0.0.0.0/0 or ::/0: a default route that needs no router
	Sysctls []Sysctl       // that the stack needs for it

	Qdisc string // queueing discipline; "": Linux's own

	Flag  string // what the user wrote
	Place string // where, if in a file; "": in flags
}

// Auto reports whether guise makes the tap and has the host forward for it.
func (l *Link) Auto() bool { return l.Kind == Tap && l.Device == "" && l.FD < 0 }

var linkOptions = []string{"mac", "mtu", "offload", "ports"}

// PortsAuto has guise choose the ports.
const PortsAuto = "auto"

var deviceName = regexp.MustCompile(`^[^\s/:%,]{1,15}$`)

// CheckDevice refuses a text that cannot be the name of a network interface.
func CheckDevice(name string) error {
	if !deviceName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%q cannot be the name of a network interface; expected 1 to 15 characters "+
			"without blanks, '/', ':', '%%' and ','", name)
	}
	return oneLine(name)
}

// ParseLinks reads the values of --link. An empty list means one link of a
// kind that is chosen later; the word "none" alone means no link at all.
func ParseLinks(specs []string, offload bool) ([]*Link, error) {
	if len(specs) == 0 {
		return []*Link{{Inside: "eth0", FD: -1, Offload: offload, Flag: "--link"}}, nil
	}
	links := []*Link{}
	for i, spec := range specs {
		kind, options, _ := strings.Cut(spec, ",")
		if kind == None {
			if len(specs) > 1 || options != "" {
				return nil, fmt.Errorf("none stands alone: a stack without a link has no other --link and no options")
			}
			break
		}
		l := &Link{Inside: fmt.Sprintf("eth%d", i), FD: -1, Offload: offload, Flag: "--link " + spec}
		if err := l.parseKind(kind); err != nil {
			return nil, err
		}
		if options != "" {
			if err := l.parseOptions(strings.Split(options, ",")); err != nil {
				return nil, fmt.Errorf("%s: %w", spec, err)
			}
		}
		if err := l.checkMAC(); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		links = append(links, l)
	}
	return links, CheckNumber(links)
}

// CheckNumber refuses more links than a stack can have.
func CheckNumber(links []*Link) error {
	if len(links) > MaxLinks {
		return fmt.Errorf("%d links are too many; a stack has at most %d", len(links), MaxLinks)
	}
	return nil
}

// NewLink returns a link of a config. kind is as in a --link, or empty; place is the place
// in the file.
func NewLink(inside, kind, place string) (*Link, error) {
	l := &Link{Inside: inside, FD: -1, Offload: true, Flag: place, Place: place}
	if err := CheckDevice(inside); err != nil {
		return nil, err
	}
	if kind != "" {
		if err := l.parseKind(kind); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// SetOption reads NAME=VALUE, an option of a --link.
func (l *Link) SetOption(option string) error {
	if err := l.parseOptions([]string{option}); err != nil {
		return err
	}
	return l.checkMAC()
}

func (l *Link) checkMAC() error {
	if kind := KindOf(l.Kind); kind != nil && !kind.Ethernet && l.MAC != "" {
		return fmt.Errorf("a %s has no Ethernet, and so no MAC address", l.Kind)
	}
	return nil
}

// origin returns what the user wrote that caused a line of the plan.
func (l *Link) origin(flag string) string { return cmp.Or(l.Place, flag) }

// MaxLinks is GUISE_MAX_LINKS of include/guise/layout.h.
const MaxLinks = 16

func (l *Link) parseOptions(options []string) error {
	before := ""
	for _, option := range options {
		key, value, given := strings.Cut(option, "=")
		if before == "ports" && !given && portWord.MatchString(option) {
			// The list of ports has commas, too.
			l.Ports += "," + option
			continue
		}
		before = key
		switch key {
		case "ports":
			if l.Kind != Packet || l.Device == "" {
				return fmt.Errorf("ports=%s; only a packet:IFNAME shares the ports of the host", value)
			}
			if value != PortsAuto && !portWord.MatchString(value) {
				return fmt.Errorf("ports=%s; expected auto, or ports and ranges as in ports=61000-65535,8080", value)
			}
			l.Ports = value
		case "mac":
			mac, err := net.ParseMAC(value)
			if err != nil || len(mac) != 6 || mac[0]&1 != 0 || bytes.Equal(mac, make([]byte, 6)) {
				return fmt.Errorf("%q is no MAC address of one interface; expected one as in 02:00:00:00:00:01", value)
			}
			l.MAC = mac.String()
		case "mtu":
			mtu, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("mtu=%s; expected a number", value)
			}
			if err := CheckMTU(l.Kind, mtu); err != nil {
				return err
			}
			l.MTU = mtu
		case "offload":
			if value != "on" && value != "off" {
				return fmt.Errorf("offload=%s; expected offload=on or offload=off", value)
			}
			l.Offload = value == "on"
		default:
			return fmt.Errorf("unknown link option %q; %s", key, suggest.Hint(key, linkOptions))
		}
	}
	return nil
}

var portWord = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`)

// CheckMTU refuses what no link of that kind can have as its MTU. One of no kind yet is a tap, or
// Ethernet like it.
func CheckMTU(kind string, mtu int) error {
	most := KindOf(cmp.Or(kind, Tap)).MTUMost
	if mtu < MTULeast || mtu > most {
		return fmt.Errorf("%d is no MTU; expected a number from %d to %d", mtu, MTULeast, most)
	}
	return nil
}

// AddAddress reads [IFNAME=]ADDR/LEN; without IFNAME it is for the first link.
func AddAddress(links []*Link, text string) error {
	l, text, err := splitLink(links, text)
	if err != nil {
		return err
	}
	return l.AddAddress(text)
}

// AddAddress reads ADDR/LEN.
func (l *Link) AddAddress(text string) error {
	prefix, err := ParseInterfaceAddress(text)
	if err != nil {
		return err
	}
	l.Addresses = append(l.Addresses, prefix)
	return nil
}

// AddGateway reads [IFNAME=]ADDR, after all addresses were added.
func AddGateway(links []*Link, text string) error {
	l, text, err := splitLink(links, text)
	if err != nil {
		return err
	}
	return l.AddGateway(text)
}

// AddGateway reads ADDR, after all addresses were added.
func (l *Link) AddGateway(text string) error {
	gateway, err := netip.ParseAddr(text)
	if err != nil || gateway.Zone() != "" || gateway.IsUnspecified() || gateway.IsMulticast() {
		return fmt.Errorf("%q is no address of a gateway; expected one as in 192.0.2.1 or 2001:db8::1", text)
	}
	for _, other := range l.Gateways {
		if other.Is4() == gateway.Is4() {
			return fmt.Errorf("%s is a second gateway of %s beside %s; expected one for each of IPv4 and IPv6",
				gateway, l.Inside, other)
		}
	}
	reached := gateway.IsLinkLocalUnicast() && gateway.Is6()
	for _, a := range l.Addresses {
		if a.Addr() == gateway {
			return fmt.Errorf("%s is the stack's own address; expected the address of the router beside it", gateway)
		}
		reached = reached || a.Contains(gateway)
	}
	if !reached {
		given := "what --ip gives it"
		if l.Place != "" {
			given = "its addresses"
		}
		return fmt.Errorf("%s is on no network of %s; expected an address inside %s (%s)",
			gateway, l.Inside, given, joinPrefixes(l.Addresses))
	}
	l.Gateways = append(l.Gateways, gateway)
	return nil
}

func splitLink(links []*Link, text string) (*Link, string, error) {
	if len(links) == 0 {
		return nil, "", fmt.Errorf("%q has no link to go to: the stack was asked to have none", text)
	}
	name, rest, named := strings.Cut(text, "=")
	if !named {
		return links[0], text, nil
	}
	var names []string
	for _, l := range links {
		if l.Inside == name {
			return l, rest, nil
		}
		names = append(names, l.Inside)
	}
	return nil, "", fmt.Errorf("%q names no interface of the stack; valid are %s", text, strings.Join(names, ", "))
}

// ParseInterfaceAddress reads ADDR/LEN, an address that an interface can have.
func ParseInterfaceAddress(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is no address with its prefix length; expected one as in 192.0.2.2/24 or 2001:db8::2/64", text)
	case p.Addr().IsUnspecified() || p.Addr().IsMulticast() || p.Addr().IsLoopback() || p.Addr().Is4In6():
		return p, fmt.Errorf("%s cannot be an interface's own address; expected one as in 192.0.2.2/24 or 2001:db8::2/64", p)
	case p.Addr().Is4() && p.Bits() < 31 && p.Addr() == p.Masked().Addr():
		return p, fmt.Errorf("%s is the network itself; expected an address inside it, such as %s/%d",
			p, p.Addr().Next(), p.Bits())
	}
	return p, nil
}

func joinPrefixes(prefixes []netip.Prefix) string {
	if len(prefixes) == 0 {
		return "none yet"
	}
	var words []string
	for _, p := range prefixes {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

// addTo writes the link with its addresses and routes. fd is the holder's descriptor.
func (l *Link) addTo(p *Plan, fd int) {
	text := fmt.Sprintf("link %s %s fd=%d", l.Inside, l.Kind, fd)
	if l.MAC != "" {
		text += " mac=" + l.MAC
	}
	if l.MTU != 0 {
		text += fmt.Sprintf(" mtu=%d", l.MTU)
	}
	if !l.Offload {
		text += " offload=off"
	}
	p.add(l.Flag, "%s", text)
	for _, s := range l.Sysctls {
		p.add(l.Flag, "sysctl %s %s", s.Key, s.Value)
	}
	for _, a := range l.Addresses {
		p.add(l.origin("--ip "+a.String()), "address %s %s", l.Inside, a)
	}
	p.add(l.Flag, "up %s", l.Inside)
}
