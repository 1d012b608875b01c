// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"net/netip"
	"strings"
)

// Route is a route in addition to those of the gateways.
type Route struct {
	To, Via, Link string // Via and Link may be "", not both
	Table         uint32 // 0: the main one
	Origin        string
}

// Check refuses what the stack would.
func (r Route) Check() error {
	if r.To != "default" {
		if err := checkPrefix(r.To); err != nil {
			return err
		}
	}
	if r.Via == "" && r.Link == "" {
		return fmt.Errorf("leads nowhere; expected via, link or both")
	}
	if r.Via != "" {
		if via, err := netip.ParseAddr(r.Via); err != nil || via.Zone() != "" {
			return fmt.Errorf("%q is no address of a router; expected one as in 192.0.2.1 or 2001:db8::1", r.Via)
		}
	}
	return nil
}

// Rule selects a table of routes for packets that match all of its parts.
type Rule struct {
	From, To, In, Out string // "": any
	Mark, Priority    uint32 // 0: any mark; a priority before all other rules
	Table             uint32
	Origin            string
}

// Check refuses what the stack would.
func (r Rule) Check() error {
	if r.Table == 0 {
		return fmt.Errorf("has no table; expected table = 100, say")
	}
	for _, prefix := range []string{r.From, r.To} {
		if prefix == "" {
			continue
		}
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	return nil
}

// Endpoint is an address that Multipath TCP may use.
type Endpoint struct {
	Address netip.Addr
	Link    string
	Flags   []string
	Origin  string
}

// Limits of Multipath TCP.
type Limits struct{ AcceptAddAddr, Subflows int }

// checkPrefix takes an address without a length as that address alone, as Linux does.
func checkPrefix(text string) error {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return nil
	}
	if _, err := netip.ParsePrefix(text); err != nil {
		return fmt.Errorf("%q is no prefix; expected one as in 10.0.0.0/8 or 2001:db8::/32", text)
	}
	return nil
}

func (r *Run) addMoreRoutes(p *Plan) {
	for _, route := range r.Routes {
		p.add(route.Origin, "%s", words("route "+route.To, "via", route.Via, "dev", route.Link, "table", number(route.Table)))
	}
	for _, rule := range r.Rules {
		p.add(rule.Origin, "%s", words("rule", "from", rule.From, "to", rule.To, "iif", rule.In, "oif", rule.Out,
			"fwmark", number(rule.Mark), "priority", number(rule.Priority), "table", number(rule.Table)))
	}
}

func number(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// words returns the names that have a value, with their values, as words of a line.
func words(line string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			line += " " + pairs[i] + " " + pairs[i+1]
		}
	}
	return strings.TrimSpace(line)
}
