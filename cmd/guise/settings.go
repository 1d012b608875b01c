// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"guise/internal/config"
	"guise/internal/holder"
	"guise/internal/hostnet/guests"
	"guise/internal/hostnet/share"
	"guise/internal/image"
	"guise/internal/plan"
	"guise/internal/uplink/opener"
)

// wishes are what a user wants of a stack, as flags or a file have it: what the
// settings mean, and what is wrong with them, is found out in one place for both.
type wishes struct {
	*config.Stack
	links   []*plan.Link
	uplinks []*plan.Uplink
	// origin is what the user wrote: a flag, with its value unless that is "", or the
	// place in a file.
	origin func(key, value string) string
}

// settings are what was wished for, checked.
type settings struct {
	plan.Run
	names
	uplinks []*plan.Uplink
	ports   share.Ports    // that it has on uplinks whose addresses it shares
	opener  *opener.Client // what opens the uplinks, if the user has no rights for that

	id   string // of the journal
	file string // the path of the config, or ""

	who       holder.Who        // what the program is for which the stack is started
	tun       bool              // the program is a guest, or may be
	namespace *guests.Namespace // its own, once it is made

	nftables, nftablesAt string // a ruleset, and where it stands
}

func (w *wishes) wrong(key string, err error) error {
	return usage("%s: %w", w.origin(key, ""), err)
}

func (w *wishes) settings(fallbackName string) (*settings, error) {
	if w.Profile != "" {
		profile, err := config.FindProfile(w.Profile)
		if err != nil {
			return nil, w.wrong("profile", err)
		}
		w.Under(profile.Stack)
	}
	s := &settings{nftables: w.Nftables, who: holder.Member, tun: w.Guests}
	s.Origin = w.origin
	s.uplinks = w.uplinks
	s.Links, s.MPTCP, s.Netem = w.links, w.MPTCP.Enabled, strings.TrimSpace(w.Netem)
	s.Name, s.CC = cmp.Or(w.Name, fallbackName), w.CC
	var err error
	if err = plan.CheckName(s.Name); err != nil {
		if w.Name != "" {
			return nil, w.wrong("name", err)
		}
		s.Name = "guise"
	}
	if s.Privileges = w.Privileges; s.Privileges != "" {
		if err := plan.CheckPrivileges(s.Privileges); err != nil {
			return nil, w.wrong("privileges", err)
		}
	}
	s.Served = w.Served
	if s.User = w.User; s.User != "" || w.Says("user") {
		if err := plan.CheckUser(s.User); err != nil {
			return nil, w.wrong("user", err)
		}
	}
	if s.Memory, err = plan.ParseMemory(cmp.Or(w.Memory, "256M")); err != nil {
		return nil, w.wrong("memory", err)
	}
	for _, kv := range w.Sysctls() {
		sysctl, err := plan.ParseSysctl(kv.Key + "=" + kv.Value)
		if err != nil {
			return nil, w.wrong("sysctl."+kv.Key, err)
		}
		s.Sysctls = append(s.Sysctls, sysctl)
	}
	if err := w.readKernel(s); err != nil {
		return nil, err
	}
	if err := w.readNames(s); err != nil {
		return nil, err
	}
	if err := plan.CheckNetem(s.Netem); err != nil {
		return nil, w.wrong("netem", err)
	}
	if len(s.uplinks) > 0 {
		if err := plan.CheckUplinks(s.uplinks); err != nil {
			return nil, w.wrong("uplink", err)
		}
		if s.Netem != "" {
			return nil, usage("%s impairs links, and uplinks have qdiscs of their own; expected no uplink beside it", w.origin("netem", ""))
		}
	}
	if s.Netem != "" && len(s.Links) == 0 {
		return nil, usage("%s impairs a link, and %s leaves none", w.origin("netem", ""), w.origin("link", "none"))
	}
	return s, w.readRoutes(s)
}

// readKernel chooses the kernel image, and refuses what it does not have.
func (w *wishes) readKernel(s *settings) error {
	kernel, err := image.Choose(w.Extensions)
	if err != nil && len(w.Extensions) > 0 {
		return w.wrong("extension", err)
	}
	if len(w.Extensions) > 0 && os.Getenv("GUISE_KERNEL") == "" {
		s.Kernel = kernel.Name()
	}
	if err != nil {
		kernel = &image.Image{} // the holder says what is wrong with it
	}
	congestion := func(i *image.Image) []string { return i.Congestion }
	schedulers := func(i *image.Image) []string { return i.Schedulers }
	if s.CC != "" {
		if err := plan.CheckCongestionControl(s.CC, kernel.Congestion); err != nil {
			return w.wrong("cc", offered(err, s.CC, congestion))
		}
	}
	for _, sysctl := range s.Sysctls {
		var err error
		list := congestion
		switch strings.ReplaceAll(sysctl.Key, "/", ".") {
		case "net.ipv4.tcp_congestion_control":
			err = plan.CheckCongestionControl(sysctl.Value, kernel.Congestion)
		case "net.mptcp.scheduler":
			err = plan.CheckScheduler(sysctl.Value, kernel.Schedulers)
			list = schedulers
		}
		if err != nil {
			err = offered(err, sysctl.Value, list)
			return w.wrong("sysctl."+sysctl.Key, fmt.Errorf("%s: %w", sysctl.Key, err))
		}
	}
	return nil
}

// offered adds to err which extensions would bring what it is about, if an image has them.
func offered(err error, name string, list func(*image.Image) []string) error {
	if extensions := image.Offering(name, list); extensions != nil {
		return fmt.Errorf("%w; with --extension %s the stack has it", err, strings.Join(extensions, " --extension "))
	}
	return err
}

// readRoutes checks what only a file can say.
func (w *wishes) readRoutes(s *settings) error {
	for i, l := range s.Links {
		if l.Qdisc != "" && s.Netem != "" {
			return w.wrong(fmt.Sprintf("link.%d.qdisc", i), errors.New("and netem are both the qdisc of the link; expected one of them"))
		}
	}
	for i, r := range w.Routes {
		key := fmt.Sprintf("route.%d", i)
		table, err := tableNumber(r.Table)
		if err == nil {
			err = s.checkInterface(r.Link)
		}
		route := plan.Route{To: r.To, Via: r.Via, Link: r.Link, Table: table, Origin: w.origin(key, "")}
		if err == nil {
			err = route.Check()
		}
		if err != nil {
			return w.wrong(key, err)
		}
		s.Routes = append(s.Routes, route)
	}
	for i, r := range w.Rules {
		key := fmt.Sprintf("rule.%d", i)
		rule := plan.Rule{From: r.From, To: r.To, In: r.In, Out: r.Out, Origin: w.origin(key, "")}
		err := errors.Join(s.checkInterface(r.In), s.checkInterface(r.Out))
		for _, n := range []struct {
			to    *uint32
			value int
		}{{&rule.Mark, r.Mark}, {&rule.Priority, r.Priority}, {&rule.Table, r.Table}} {
			var bad error
			*n.to, bad = tableNumber(n.value)
			err = errors.Join(err, bad)
		}
		if err == nil {
			err = rule.Check()
		}
		if err != nil {
			return w.wrong(key, err)
		}
		s.Rules = append(s.Rules, rule)
	}
	return w.readMPTCP(s)
}

func (w *wishes) readMPTCP(s *settings) error {
	for i, e := range w.MPTCP.EndpointTables {
		key := fmt.Sprintf("mptcp.endpoint.%d", i)
		address, err := netip.ParseAddr(e.Address)
		if err != nil || address.Zone() != "" {
			return w.wrong(key, fmt.Errorf("%q is no address; expected one as in 192.0.2.2 or 2001:db8::2", e.Address))
		}
		if e.Link == "" {
			return w.wrong(key, errors.New(`has no link; expected link = "eth1", say`))
		}
		if err := s.checkInterface(e.Link); err != nil {
			return w.wrong(key, err)
		}
		flags := e.Flags
		if len(flags) == 0 {
			flags = []string{"subflow"}
		}
		s.Endpoints = append(s.Endpoints, plan.Endpoint{Address: address, Link: e.Link, Flags: flags, Origin: w.origin(key, "")})
	}
	if w.MPTCP.AcceptAddAddr == nil && w.MPTCP.Subflows == nil {
		return nil
	}
	s.Limits = &plan.Limits{Subflows: 2}
	if s.MPTCP {
		s.Limits = &plan.Limits{AcceptAddAddr: 8, Subflows: 8}
	}
	for _, n := range []struct {
		key   string
		to    *int
		value *int
	}{{"accept_add_addr", &s.Limits.AcceptAddAddr, w.MPTCP.AcceptAddAddr}, {"subflows", &s.Limits.Subflows, w.MPTCP.Subflows}} {
		if n.value == nil {
			continue
		}
		if *n.value < 0 || *n.value > 8 {
			return w.wrong("mptcp."+n.key, fmt.Errorf("%d is too many or too few; expected 0 to 8", *n.value))
		}
		*n.to = *n.value
	}
	return nil
}

func tableNumber(n int) (uint32, error) {
	if n < 0 || uint64(n) > 1<<32-1 {
		return 0, fmt.Errorf("%d is no such number; expected 1 to %d", n, uint32(1<<32-1))
	}
	return uint32(n), nil
}

// checkInterface refuses the name of an interface that the stack will not have; "" is
// accepted.
func (s *settings) checkInterface(name string) error {
	names := []string{"lo"}
	for _, u := range s.uplinks {
		names = append(names, u.Name)
	}
	for _, l := range s.Links {
		names = append(names, l.Inside)
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("the stack has no interface %q; valid are %s", name, strings.Join(names, ", "))
}

// fromFile are the wishes of a config.
func fromFile(file *config.Stack) (*wishes, error) {
	w := &wishes{Stack: file, origin: func(key, _ string) string { return file.Where(key) }}
	for i, l := range file.Links {
		key := fmt.Sprintf("link.%d", i)
		if l.Kind == plan.None {
			if len(file.Links) > 1 || l.Name+l.Device+l.Path+l.MAC+l.Qdisc != "" || len(l.Addresses)+len(l.Gateways) > 0 {
				return nil, w.wrong(key, errors.New("none stands alone: a stack without a link has no other link and nothing to say of it"))
			}
			return w, nil
		}
		link, err := w.link(key, i, &l)
		if err != nil {
			return nil, err
		}
		w.links = append(w.links, link)
	}
	if len(file.Uplinks) > 0 {
		if len(file.Links) > 0 {
			return nil, w.wrong("uplink", errors.New("and link exclude each other; expected the interfaces of the stack as one or the other"))
		}
		return w, w.readUplinks()
	}
	if len(w.links) == 0 {
		w.links, _ = plan.ParseLinks(nil, true)
		w.links[0].Place = file.Where("link")
	}
	if err := plan.CheckNumber(w.links); err != nil {
		return nil, w.wrong("link", err)
	}
	return w, nil
}

func (w *wishes) link(key string, i int, l *config.Link) (*plan.Link, error) {
	kind, what := l.Kind, ""
	switch {
	case l.Device != "" && l.Path != "":
		return nil, w.wrong(key, errors.New("has a device and a path; expected a device (of a tap) or a path (of a stream)"))
	case l.Device != "":
		kind, what = cmp.Or(kind, plan.Tap), l.Device
	case l.Path != "":
		kind, what = cmp.Or(kind, plan.Stream), l.Path
	case kind == "" && len(w.Links) > 1:
		kind = plan.Tap
	}
	if strings.HasPrefix(what, "fd=") {
		return nil, w.wrong(key, fmt.Errorf("%q is a descriptor, which a file cannot name", what))
	}
	if kind != "" && what != "" {
		kind += ":" + what
	}
	link, err := plan.NewLink(cmp.Or(l.Name, fmt.Sprintf("eth%d", i)), kind, w.origin(key, ""))
	if err != nil {
		return nil, w.wrong(key, err)
	}
	for option, value := range map[string]string{"mac": l.MAC, "mtu": fmt.Sprint(l.MTU), "ports": l.Ports} {
		if at := key + "." + option; w.Says(at) {
			if err := link.SetOption(option + "=" + value); err != nil {
				return nil, w.wrong(at, err)
			}
		}
	}
	if link.Offload = l.Offload == nil || *l.Offload; link.Inside == "lo" ||
		slices.ContainsFunc(w.links, func(other *plan.Link) bool { return other.Inside == link.Inside }) {
		return nil, w.wrong(key, fmt.Errorf("the stack has an interface %s already; expected another name", link.Inside))
	}
	link.Qdisc = strings.TrimSpace(l.Qdisc)
	if err := plan.CheckNetem(link.Qdisc); err != nil {
		return nil, w.wrong(key+".qdisc", err)
	}
	for k, text := range l.Addresses {
		if err := link.AddAddress(text); err != nil {
			return nil, w.wrong(fmt.Sprintf("%s.addresses.%d", key, k), err)
		}
	}
	for k, text := range l.Gateways {
		if err := link.AddGateway(text); err != nil {
			return nil, w.wrong(fmt.Sprintf("%s.gateways.%d", key, k), err)
		}
	}
	return link, nil
}

// prepare makes the host ready, and then the stack, which answers at the socket unless
// that is nil. When it fails, it has undone what it did.
func (s *settings) prepare(socket *holder.Socket, stop <-chan os.Signal) (h *holder.Holder, err error) {
	defer func() {
		if err != nil {
			socket.Remove()
		}
	}()
	ports, err := s.bindPorts()
	if err != nil {
		return nil, err
	}
	defer closeAll(ports)
	host, err := s.prepareHost(stop)
	if err != nil {
		return nil, err
	}
	defer host.CloseLinks()
	follow, err := s.openFollow(host)
	if err != nil {
		return nil, errors.Join(err, host.Undo())
	}
	defer follow.close()
	for _, note := range host.Notes {
		complain(errors.New(note))
	}
	s.findNames()
	if s.Control != nil {
		s.tell(environment(s.resolv, s.hosts))
	}
	if journal := host.Journal(); journal != "" {
		self, err := os.Executable()
		if err == nil {
			s.Undo, err = plan.NewUndo(self, journal)
		}
		if err != nil {
			return nil, errors.Join(err, host.Undo())
		}
	}
	guests, err := s.openGuests()
	if err != nil {
		return nil, errors.Join(err, host.Undo())
	}
	if s.namespace != nil {
		defer s.namespace.Tun.Close()
	}
	s.Held = len(host.Keep)
	h, err = raise(s.Plan(holder.FirstLinkFD), slices.Concat(host.Links, ports, socket.Files(), guests, follow.files(), host.Keep), s.who, stop)
	if err != nil {
		return nil, errors.Join(err, host.Undo())
	}
	socket.Close()
	err = host.HandOver(h.PID)
	if err == nil {
		err = follow.await(stop)
	}
	if err != nil {
		return nil, errors.Join(err, abandon(h))
	}
	return h, nil
}
