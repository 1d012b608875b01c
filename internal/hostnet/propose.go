// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"net/netip"
	"slices"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/passt"
	"guise/internal/hostnet/survey"
	"guise/internal/plan"
)

// madeTap is a tap that guise makes, and the host's side of it.
type madeTap struct {
	link  *plan.Link
	name  string
	hosts []netip.Prefix // the host's addresses on it
}

// Propose chooses whatever the user has not said about the links. For links whose
// other side guise makes, it finds names and addresses for both sides and sets those
// of the stack. It changes nothing on the host.
func Propose(links []*plan.Link) error {
	if _, err := choose(links); err != nil {
		return err
	}
	s, err := survey.Host()
	if err != nil {
		return err
	}
	_, err = propose(s, links)
	return err
}

func propose(s *survey.Survey, links []*plan.Link) ([]madeTap, error) {
	var taps []madeTap
	for _, l := range links {
		if l.Kind == plan.Passt {
			if err := passt.Propose(s, l); err != nil {
				return nil, err
			}
		}
		if !l.Auto() {
			continue
		}
		t := madeTap{link: l, name: s.FreeName()}
		if l.MTU == 0 && s.MTU < plan.KindOf(plan.Tap).MTU {
			l.MTU = s.MTU
		}
		var err error
		if len(l.Addresses) > 0 {
			err = proposeHosts(s, &t)
		} else {
			err = proposeSubnets(s, &t)
		}
		if err != nil {
			return nil, err
		}
		taps = append(taps, t)
	}
	return taps, nil
}

// proposeSubnets chooses all addresses of the link.
func proposeSubnets(s *survey.Survey, t *madeTap) error {
	four, err := s.Taken.Free4()
	if err != nil {
		return err
	}
	join(s, t, four)
	if !s.IPv6 {
		return nil
	}
	six, err := s.Taken.Free6()
	if err != nil {
		return err
	}
	join(s, t, six)
	return nil
}

func join(s *survey.Survey, t *madeTap, p survey.Pair) {
	t.hosts = append(t.hosts, p.Host)
	s.Join(t.link, p)
}

// proposeHosts chooses the host's addresses in the networks that the user named.
func proposeHosts(s *survey.Survey, t *madeTap) error {
	gateway := map[bool]bool{} // by Is4
	for _, g := range t.link.Gateways {
		gateway[g.Is4()] = true
	}
	for _, stack := range t.link.Addresses {
		if used, ok := s.Taken.By(stack.Masked()); ok {
			if slices.Contains(s.Servers, used) {
				return access.Refuse("--ip %s: the host's name server %s (%s) lies in that network, where the host would no longer "+
					"reach it; expected a network that the host does not use", stack, used.Addr(), survey.ResolvConf)
			}
			on := ""
			if owner := survey.Owner(used.Masked()); owner != "" {
				on = " on " + owner
			}
			return access.Refuse("--ip %s: the host has %s itself%s, so packets between it and the stack would be lost; "+
				"expected a network that the host does not use", stack, used, on)
		}
		host, err := survey.Opposite(stack, t.link.Gateways)
		if err != nil {
			return err
		}
		t.hosts = append(t.hosts, host)
		s.Taken = append(s.Taken, host.Masked())
		if is4 := host.Addr().Is4(); !gateway[is4] {
			gateway[is4] = true
			t.link.Gateways = append(t.link.Gateways, host.Addr())
		}
	}
	return nil
}
