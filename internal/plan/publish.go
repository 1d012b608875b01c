// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Publication is a published port: a port of the stack, and an address and port of the host.
type Publication struct {
	Host netip.AddrPort // port 0: any that is free
	Port uint16         // of the stack
	UDP  bool
	Flag string // what the user wrote
}

// Protocol is "tcp" or "udp".
func (p *Publication) Protocol() string {
	if p.UDP {
		return "udp"
	}
	return "tcp"
}

const publishForm = "expected [ADDR:]HOSTPORT:PORT[/udp] as in 8080:80, 0.0.0.0:5353:53/udp or [::1]:8080:80"

// ParsePublication reads a value of --publish. Without an address it is 127.0.0.1, so
// that only the host itself reaches the port. To let other machines reach it, the user
// must write an address.
func ParsePublication(text string) (*Publication, error) {
	p := &Publication{Flag: "--publish " + text}
	rest, protocol, found := strings.Cut(text, "/")
	switch {
	case !found || protocol == "tcp":
	case protocol == "udp":
		p.UDP = true
	default:
		return nil, fmt.Errorf("%q: the protocol %q is neither tcp nor udp", text, protocol)
	}
	inside := strings.LastIndexByte(rest, ':')
	if inside < 0 {
		return nil, fmt.Errorf("%q: %s", text, publishForm)
	}
	addr, host := "127.0.0.1", rest[:inside]
	if outside := strings.LastIndexByte(host, ':'); outside >= 0 {
		addr, host = host[:outside], host[outside+1:]
	}
	if bare, ok := strings.CutPrefix(addr, "["); ok && strings.HasSuffix(bare, "]") {
		addr = strings.TrimSuffix(bare, "]")
	} else if strings.Contains(addr, ":") {
		return nil, fmt.Errorf("%q: an IPv6 address stands in brackets; %s", text, publishForm)
	}
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, fmt.Errorf("%q: %q is no address; %s", text, addr, publishForm)
	}
	port, err := parsePort(host)
	if err != nil {
		return nil, fmt.Errorf("%q: the host's port %w", text, err)
	}
	p.Host = netip.AddrPortFrom(ip, port)
	if p.Port, err = parsePort(rest[inside+1:]); err == nil && p.Port == 0 {
		err = errors.New("must be a number from 1 to 65535")
	}
	if err != nil {
		return nil, fmt.Errorf("%q: the stack's port %w", text, err)
	}
	return p, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 to 65535", text)
	}
	return uint16(n), nil
}

// Relay makes an address inside the stack stand for one of the host.
type Relay struct {
	From, To string // ADDR or ADDR:PORT
	Flag     string // what the user wrote; "": guise adds it by itself
}

// Addresses inside the stack that stand for others. The first two stand for the host's
// localhost, the others for name servers.
const (
	HostAddress  = "169.254.77.1"
	HostAddress6 = "fd67:7569:7365::1"

	resolverAddress = "169.254.77.%d"
	firstResolver   = 11
)

// LocalhostRelays are the relays to the host's localhost.
func LocalhostRelays() []Relay {
	return []Relay{
		{From: HostAddress, To: "127.0.0.1"},
		{From: HostAddress6, To: "::1"},
	}
}
