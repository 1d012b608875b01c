// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"guise/internal/holder"
)

// model is a stack that takes changes as a real one does, and refuses what that refuses: what is there
// already or is not there, an address on no interface, a router that no route leads to, an endpoint
// without its address.
type model struct {
	t         *testing.T
	links     map[string]*modelLink
	routes    []string // as in the request
	rules     []string
	endpoints map[string]string // by "ADDR dev IFNAME"
	servers   string
	told      map[string]string
	lines     []string // all requests
	refuse    string   // a line that contains it is refused once
}

type modelLink struct {
	file      string
	up        bool
	carrier   string
	mtu       string
	addresses []netip.Prefix
}

func newModel(t *testing.T) *model {
	return &model{t: t, links: map[string]*modelLink{}, endpoints: map[string]string{}, told: map[string]string{}}
}

// refusal makes a holder.RefusedError by the only way there is: that of an answer.
func refusal(format string, args ...any) error { return holder.Refusal(fmt.Sprintf(format, args...)) }

func (m *model) Change(text string, files ...*os.File) error {
	m.lines = append(m.lines, text)
	if m.refuse != "" && strings.Contains(text, m.refuse) {
		m.refuse = ""
		return refusal("not this time")
	}
	if text == "reset" {
		m.links, m.routes, m.rules, m.endpoints = map[string]*modelLink{}, nil, nil, map[string]string{}
		return nil
	}
	if words, ok := strings.CutPrefix(text, "nameservers"); ok {
		m.servers = strings.TrimSpace(words)
		return nil
	}
	text, no := strings.CutPrefix(text, "no ")
	err := m.apply(!no, strings.Fields(text), files)
	if !no && err != nil {
		m.t.Errorf("%q: %v", text, err)
	}
	return err
}

func (m *model) link(name string) (*modelLink, error) {
	if l := m.links[name]; l != nil {
		return l, nil
	}
	return nil, refusal("there is no interface %s", name)
}

// after is the word after that word.
func after(words []string, word string) string {
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

func (m *model) apply(add bool, words []string, files []*os.File) error {
	text := strings.Join(words, " ")
	switch words[0] {
	case "tell":
		key, value, _ := strings.Cut(words[1], "=")
		m.told[key] = value
		return nil
	case "link":
		if add == (m.links[words[1]] != nil) {
			return refusal("link %s: %v", words[1], add)
		}
		if add {
			if len(files) != 1 || files[0] == nil {
				return refusal("link %s has no descriptor", words[1])
			}
			m.links[words[1]] = &modelLink{file: files[0].Name(), carrier: "on", mtu: "1500"}
			return nil
		}
		delete(m.links, words[1])
		m.routes = slices.DeleteFunc(m.routes, func(r string) bool { return after(strings.Fields(r), "dev") == words[1] })
		return nil
	case "rule":
		return toggle(&m.rules, text, add)
	case "mptcp":
		key := strings.Join(words[2:5], " ")
		_, there := m.endpoints[key]
		if !add {
			delete(m.endpoints, key)
			if !there {
				return refusal("no endpoint %s", key)
			}
			return nil
		}
		l, err := m.link(words[4])
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(l.addresses, func(p netip.Prefix) bool { return p.Addr().String() == words[2] }) {
			return refusal("endpoint %s has no address", words[2])
		}
		if len(m.endpoints) == 8 && !there {
			return refusal("too many endpoints")
		}
		m.endpoints[key] = strings.Join(words[5:], " ")
		return nil
	case "sysctl":
		return nil
	case "route":
		return m.route(add, words)
	}
	l, err := m.link(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "up":
		if l.up == add {
			return refusal("%s: up is %v", words[1], add)
		}
		l.up = add
	case "carrier":
		l.carrier = words[2]
	case "mtu":
		l.mtu = words[2]
	case "address":
		p := netip.MustParsePrefix(words[2])
		if slices.Contains(l.addresses, p) == add {
			return refusal("address %s: %v", p, add)
		}
		if add {
			l.addresses = append(l.addresses, p)
			return nil
		}
		l.addresses = slices.DeleteFunc(l.addresses, func(q netip.Prefix) bool { return q == p })
		if p.Addr().Is4() && !slices.ContainsFunc(l.addresses, func(q netip.Prefix) bool { return q.Addr().Is4() }) {
			m.routes = slices.DeleteFunc(m.routes, func(r string) bool {
				return after(strings.Fields(r), "dev") == words[1] && !strings.Contains(r, ":")
			})
		}
	default:
		return refusal("unknown line %q", text)
	}
	return nil
}

func toggle(all *[]string, text string, add bool) error {
	if slices.Contains(*all, text) == add {
		return refusal("%q: %v", text, add)
	}
	if add {
		*all = append(*all, text)
	} else {
		*all = slices.DeleteFunc(*all, func(s string) bool { return s == text })
	}
	return nil
}

func (m *model) route(add bool, words []string) error {
	text := strings.Join(words, " ")
	name := after(words, "dev")
	l, err := m.link(name)
	if err != nil {
		return err
	}
	if !add {
		return toggle(&m.routes, text, false)
	}
	if !l.up {
		return refusal("route on %s, which is down", name)
	}
	// What makes two routes one.
	same := func(r string) bool {
		other := strings.Fields(r)
		return strings.Contains(r, ":") == strings.Contains(text, ":") && other[1] == words[1] &&
			after(other, "table") == after(words, "table") && after(other, "metric") == after(words, "metric")
	}
	if slices.ContainsFunc(m.routes, same) {
		return refusal("there is such a route: %q beside %q", text, m.routes)
	}
	if via := after(words, "via"); via != "" {
		gateway := netip.MustParseAddr(via)
		reached := gateway.Is6() && gateway.IsLinkLocalUnicast()
		for _, a := range l.addresses {
			reached = reached || a.Contains(gateway)
		}
		for _, r := range m.routes {
			p, err := netip.ParsePrefix(strings.Fields(r)[1])
			reached = reached || err == nil && p.Contains(gateway) && after(strings.Fields(r), "dev") == name
		}
		if !reached {
			return refusal("no route to %s", gateway)
		}
	}
	return toggle(&m.routes, text, true)
}

// state is all that the stack has, in an order of its own.
func (m *model) state() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m.links)) {
		l := m.links[name]
		var addresses []string
		for _, a := range l.addresses {
			addresses = append(addresses, a.String())
		}
		slices.Sort(addresses)
		all = append(all, fmt.Sprintf("%s up %v carrier %s mtu %s %v", name, l.up, l.carrier, l.mtu, addresses))
	}
	rest := slices.Concat(m.routes, m.rules)
	for key, flags := range m.endpoints {
		rest = append(rest, "endpoint "+key+" "+flags)
	}
	slices.Sort(rest)
	return strings.Join(append(all, rest...), "\n")
}
