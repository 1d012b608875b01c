// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net/netip"
	"slices"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// madeTap is a tap that guise makes, and the host's side of it.
type madeTap struct {
	link  *plan.Link
	name  string
	hosts []netip.Prefix // the host's addresses on it
}

// Propose chooses what is not said of the links, finds names and addresses for
// those whose other side is guise's, and writes the stack's share into them. It
// changes nothing on the host.
func Propose(links []*plan.Link) error {
	if _, err := choose(links); err != nil {
		return err
	}
	s, err := surveyHost()
	if err != nil {
		return err
	}
	_, err = s.propose(links)
	return err
}

func (s *survey) propose(links []*plan.Link) ([]madeTap, error) {
	var taps []madeTap
	for _, l := range links {
		if l.Kind == plan.Passt {
			if err := s.proposePasst(l); err != nil {
				return nil, err
			}
		}
		if !l.Auto() {
			continue
		}
		t := madeTap{link: l, name: s.freeName()}
		if l.MTU == 0 && s.mtu < 1500 {
			l.MTU = s.mtu
		}
		var err error
		if len(l.Addresses) > 0 {
			err = s.proposeHosts(&t)
		} else {
			err = s.proposeSubnets(&t)
		}
		if err != nil {
			return nil, err
		}
		taps = append(taps, t)
	}
	return taps, nil
}

// proposeSubnets chooses all addresses of the link.
func (s *survey) proposeSubnets(t *madeTap) error {
	four, err := s.taken.free4()
	if err != nil {
		return err
	}
	s.join(t, four)
	if !s.ipv6 {
		return nil
	}
	six, err := s.taken.free6()
	if err != nil {
		return err
	}
	s.join(t, six)
	return nil
}

func (s *survey) join(t *madeTap, p pair) {
	t.hosts = append(t.hosts, p.host)
	t.link.Addresses = append(t.link.Addresses, p.stack)
	t.link.Gateways = append(t.link.Gateways, p.host.Addr())
	s.taken = append(s.taken, p.host.Masked())
}

// proposeHosts chooses the host's addresses beside those the user named.
func (s *survey) proposeHosts(t *madeTap) error {
	gateway := map[bool]bool{} // by Is4
	for _, g := range t.link.Gateways {
		gateway[g.Is4()] = true
	}
	for _, stack := range t.link.Addresses {
		if used, ok := s.taken.by(stack.Masked()); ok {
			if slices.Contains(s.servers, used) {
				return access.Refuse("--ip %s: the host's name server %s (%s) lies in that network, where the host would no longer "+
					"reach it; expected a network that the host does not use", stack, used.Addr(), resolvConf)
			}
			return access.Refuse("--ip %s: the host has %s itself, so packets between it and the stack would go astray; "+
				"expected a network that the host does not use", stack, used)
		}
		host, err := opposite(stack, t.link.Gateways)
		if err != nil {
			return err
		}
		t.hosts = append(t.hosts, host)
		s.taken = append(s.taken, host.Masked())
		if is4 := host.Addr().Is4(); !gateway[is4] {
			gateway[is4] = true
			t.link.Gateways = append(t.link.Gateways, host.Addr())
		}
	}
	return nil
}
