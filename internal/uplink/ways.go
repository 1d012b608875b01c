// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/share"
	"guise/internal/plan"
	"guise/internal/uplink/lease"
	"guise/internal/uplink/macvtap"
	"guise/internal/uplink/opener"
)

// ways opens what a stack uses of the host.
//
//	share, exclusive	a packet socket on the interface itself, with an nftables table that hides from
//				the host what is the stack's (internal/hostnet/share). The warden keeps what
//				owns the table: if the follower ends, the host still sees none of it
//				Without rights of the follower's own it asks a service for a tap instead
//				(internal/uplink/opener), which also reserves the ports and keeps the table
//	own			a device beside the interface (internal/uplink/macvtap), whose addresses
//				the network gives (internal/uplink/lease, in a process without rights),
//				or the user
type ways struct {
	config  *Config
	control string
	keeper  keeper
	memory  *memory
	swept   bool          // taps of an earlier follower are gone
	slots   map[int]*link // whose descriptors the warden keeps
	changed chan struct{} // a network has given something else than before, or the opener has ended

	opener *opener.Client  // nil: the follower has the rights itself
	ended  <-chan struct{} // the opener
	lost   bool

	lock   sync.Mutex
	states map[*link]lease.State
}

func newWays(c *Config, control string, k keeper, m *memory) *ways {
	return &ways{config: c, control: control, keeper: k, memory: m, slots: map[int]*link{},
		changed: make(chan struct{}, 1), states: map[*link]lease.State{}}
}

func (w *ways) open(p *path) (*link, error) {
	if w.opener != nil {
		return w.openByOpener(p)
	}
	if p.Way == plan.Own {
		return w.openOwn(p)
	}
	if p.Way == plan.Share && w.config.User {
		return w.openTap(p)
	}
	return w.openShared(p)
}

func (w *ways) useOpener(c *opener.Client) {
	w.opener, w.ended = c, c.Ended()
	go func() {
		<-w.ended
		poke(w.changed)
	}()
}

// openByOpener has a tap made for the path. Requests say which interface they are about, and a new tap takes
// the place of the one before: so an earlier one is not closed.
func (w *ways) openByOpener(p *path) (*link, error) {
	o, err := w.opener.Open(p.Name)
	if err != nil {
		return nil, err
	}
	k := &link{kind: o.Kind, file: o.File, mac: o.MAC, host: p.device.mac, index: p.device.index}
	k.addresses = func(all []netip.Addr) error {
		if w.slots[p.place] != k {
			return nil
		}
		return w.opener.SetAddresses(p.Name, all)
	}
	k.closer = func() {
		if w.slots[p.place] == k {
			delete(w.slots, p.place)
			w.opener.CloseUplink(p.Name)
		}
		o.File.Close()
	}
	w.slots[p.place] = k
	k.settings = settingsOfShared(p.Name)
	return k, nil
}

// lose gives up what the opener has made, once it has ended: it took all of it along.
func (w *ways) lose(f *follower) {
	if w.opener == nil || w.lost {
		return
	}
	select {
	case <-w.ended:
	default:
		return
	}
	w.lost = true
	for _, p := range f.paths {
		if p.link != nil {
			f.fail(p, errors.New("the service that opens uplinks for you has ended, and what it made is gone; start the stack anew"))
		}
	}
}

func (w *ways) openShared(p *path) (*link, error) {
	j, err := w.lockJournal()
	if err != nil {
		return nil, err
	}
	defer j.Folder.Unlock()
	r := share.Request{Interface: p.Name, Exclusive: p.Way == plan.Exclusive}
	if !r.Exclusive {
		r.Addresses = bare(p.addresses())
		if r.Ports, err = share.ParsePorts(w.config.Ports); err != nil {
			return nil, err
		}
	}
	if r.Exclusive { // there cannot be two of them
		w.keeper.keep(p.place, nil)
		for range 100 {
			if share.CheckOthers(p.Name, true) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	s, err := share.Open(r, j)
	if err != nil {
		return nil, err
	}
	k := &link{kind: plan.Packet, file: s.Packet, host: p.device.mac, index: p.device.index, addresses: s.SetAddresses}
	if err := w.keeper.keep(p.place, s.Keep); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	w.slots[p.place] = k
	k.closer = func() {
		if w.slots[p.place] == k { // else those of a newer one have taken their place
			w.keeper.keep(p.place, nil)
		}
		s.Close()
	}
	if !r.Exclusive {
		k.settings = settingsOfShared(p.Name)
	} else {
		k.settings = append(k.settings, setting("net.ipv6.conf.*.accept_dad", p.Name, "0"))
	}
	return k, nil
}

// setting is a sysctl of an interface, whose name may have dots in it.
func setting(key, name, value string) string {
	return strings.Replace(strings.ReplaceAll(key, ".", "/"), "*", name, 1) + " " + value
}

// settingsOfShared are those of an interface whose addresses are the host's, too.
func settingsOfShared(name string) (all []string) {
	for _, s := range share.LinkSettings("*") {
		all = append(all, setting(s.Key, name, s.Value))
	}
	return all
}

func (w *ways) openOwn(p *path) (*link, error) {
	who := sha256.Sum256([]byte(w.control + " " + p.Name))
	d, err := openBeside(p.Name, who)
	if err != nil {
		return nil, err
	}
	k := &link{kind: plan.Tap, file: d.Tap, mac: d.MAC.String(), index: p.device.index,
		local: netip.PrefixFrom(d.LinkLocal, 64),
		settings: []string{setting("net.ipv6.conf.*.accept_dad", p.Name, "0"),
			setting("net.ipv6.conf.*.dad_transmits", p.Name, "0")}}
	k.addresses = d.SetAddresses
	k.closer = func() { d.Close() }
	p.leased = &granted{}
	if len(p.Addresses) > 0 {
		p.leased = given(p.Uplink)
		return k, nil
	}
	port, err := lease.Open(d.Namespace, d.Name)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	states := port.FollowApart(ctx, lease.Want{Name: p.Name, IPv4: true, IPv6: true, LinkLocal: d.LinkLocal, Identity: who[:], Secret: who[:]})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for s := range states {
			w.lock.Lock()
			w.states[k] = s
			w.lock.Unlock()
			poke(w.changed)
		}
	}()
	k.giveBack = func() {
		cancel()
		<-over
	}
	k.closer = func() {
		cancel()
		d.Close()
		w.lock.Lock()
		defer w.lock.Unlock()
		delete(w.states, k)
	}
	return k, nil
}

// openTap is for a stack whose user is not to send whatever a packet socket can.
func (w *ways) openTap(p *path) (*link, error) {
	ports, err := share.ParsePorts(w.config.Ports)
	if err != nil {
		return nil, err
	}
	j, err := w.lockJournal()
	if err != nil {
		return nil, err
	}
	defer j.Folder.Unlock()
	if !w.swept { // of a follower that was killed
		if err := share.RemoveTapsOf(j.Journal.TableName()); err != nil {
			return nil, err
		}
		w.swept = true
	}
	t, err := share.OpenTap(p.Name, ports, j.Table())
	if err != nil {
		return nil, err
	}
	k := &link{kind: t.Kind, file: t.File, mac: t.MAC.String(), host: p.device.mac, index: p.device.index,
		addresses: t.SetAddresses, closer: func() { t.Close() }}
	k.settings = settingsOfShared(p.Name)
	return k, nil
}

// openBeside makes an interface beside that of the host, with a MAC address that who has on it. Where there
// is one with that address it is that of a follower that was killed: it lasts as long as a program of the stack
// that makes no call has its descriptor. Then it is another address. The network knows who by its identity.
func openBeside(name string, who [sha256.Size]byte) (d *macvtap.Device, err error) {
	for n := 0; n+6 <= len(who); n += 6 {
		mac := net.HardwareAddr(slices.Clone(who[n : n+6]))
		mac[0] = mac[0]&0xfc | 2 // of one station, and of no manufacturer
		if d, err = macvtap.Open(name, mac); !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return d, err
}

// given are the addresses that the user has named.
func given(u *plan.Uplink) *granted {
	g := &granted{addresses: u.Addresses}
	for _, a := range u.Gateways {
		g.gateways = append(g.gateways, gateway{a.Is4(), a})
	}
	return g
}

// take gives the paths what their networks have given since the last time.
func (w *ways) take(paths []*path) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, p := range paths {
		s, ok := w.states[p.link]
		if !ok {
			continue
		}
		g := &granted{mtu: s.MTU, servers: s.DNS, onLink: slices.Clone(s.OnLink), trouble: strings.Join(s.Trouble, "; ")}
		for _, a := range s.Addresses {
			g.addresses = append(g.addresses, a.Prefix)
		}
		for _, a := range s.Gateways {
			if !slices.ContainsFunc(g.gateways, func(other gateway) bool { return other.four == a.Is4() }) {
				g.gateways = append(g.gateways, gateway{a.Is4(), a})
			}
		}
		for _, r := range s.Routes {
			if !r.Via.IsValid() {
				g.onLink = append(g.onLink, r.Prefix)
			}
		}
		p.leased = g
	}
}

// bare are addresses without the lengths of their networks.
func bare(prefixes []netip.Prefix) (all []netip.Addr) {
	for _, p := range prefixes {
		all = append(all, p.Addr())
	}
	return all
}

// stackJournal is the stack's journal, its folder locked. The command line has written it, and the
// holder undoes it when the follower is gone.
type stackJournal struct {
	share.Noted
	table string
}

func (w *ways) lockJournal() (*stackJournal, error) {
	l, err := journal.LockExisting(filepath.Dir(w.config.Journal))
	if err != nil {
		return nil, fmt.Errorf("cannot note what is to be undone: %w", err)
	}
	j, err := l.Load(w.config.Journal)
	if err != nil {
		l.Unlock()
		return nil, fmt.Errorf("cannot note what is to be undone: %w", err)
	}
	// While a link is replaced its old table hides the packets until the new one does: it has another name.
	number := w.memory.get(opened)
	w.memory.set(opened, number+1)
	return &stackJournal{share.Noted{Folder: l, Journal: j}, fmt.Sprintf("%s_%d", j.TableName(), number%10)}, nil
}

// Table is the name that the link's table begins with.
func (s *stackJournal) Table() string { return s.table }

var _ share.Journal = (*stackJournal)(nil)
