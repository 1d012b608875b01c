// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
)

// table hides from the host what is the stack's, by an nftables table with an ingress chain on
// the interface. Packet sockets get a packet before that chain does, so the stack still has it;
// the host's firewall, connection tracking and TCP never see it.
//
//	table netdev guise_NAME_IFNAME {
//		set addresses4 { type ipv4_addr; }
//		set addresses6 { type ipv6_addr; }
//		set ports { type inet_service; flags interval; }
//		chain share {
//			type filter hook ingress device IFNAME priority filter
//			ether type { 8021q, 8021ad } accept
//			meta pkttype != host accept
//			(fragments after the first) accept
//			ip daddr @addresses4 meta l4proto { tcp, udp } th dport @ports drop
//			...
//		}
//	}
//
// Of a stack that has the interface alone, the chain is "alone", and drops the rest.
//
// These are the packets that filter.go passes, except fragments after the first, ARP and neighbour
// advertisements. Those reach both, because nothing in them says whose they are. The host gets no
// first fragment for such a one, so it forgets it, and answers nothing: it reports a packet that
// stays incomplete only if it has the first fragment.
//
// From Linux 5.12 on the table is owned by the netlink socket by which it was made: nobody else can
// change it, and it is gone when the last copy of the socket is closed, however that happens.
type table struct {
	conn  *nftables.Conn
	raw   *netlink.Conn
	nft   *nftables.Table
	sets  map[bool]*nftables.Set // addresses, by Is4
	owned bool
}

const ownerFlag = 2 // NFT_TABLE_F_OWNER

// Names of chains.
const (
	chainShare = "share"
	chainAlone = "alone"
)

// CheckOthers refuses an interface that another stack has alone, or, with exclusive, that any has.
func CheckOthers(device string, exclusive bool) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("cannot reach nftables: %w", err)
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return nil // without the netdev family there are none, and making one says so
	}
	for _, chain := range chains {
		name, of := strings.CutSuffix(chain.Table.Name, "_"+device)
		if name, ours := strings.CutPrefix(name, "guise_"); of && ours && (exclusive || chain.Name == chainAlone) {
			return access.Refuse("another stack (%s) uses %s already; a stack that has it alone cannot be beside another", name, device)
		}
	}
	return nil
}

// newTable makes an empty table of that name; see addChain.
func newTable(name string) (*table, error) {
	t := &table{nft: &nftables.Table{Name: name, Family: nftables.TableFamilyNetdev}}
	var err error
	t.conn, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		t.raw = c
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("cannot reach nftables: %w", err)
	}
	err = t.create(ownerFlag)
	t.owned = err == nil
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		err = t.create(0)
	}
	if err != nil {
		t.close()
		return nil, explainTable(name, err)
	}
	return t, nil
}

func explainTable(name string, err error) error {
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EPERM) && access.Capability(unix.CAP_NET_ADMIN) {
		return fmt.Errorf("there is an nftables table netdev %s already; is it of a stack that was killed? "+
			"`nft delete table netdev %s` removes it", name, name)
	}
	return fmt.Errorf("cannot make the nftables table netdev %s, which hides the stack's packets from the host: %w; does this "+
		"kernel have nf_tables with the netdev family (CONFIG_NF_TABLES_NETDEV; for uplinks of "+
		"users CONFIG_NFT_DUP_NETDEV)?", name, err)
}

// create makes the table itself: the nftables package knows no flags of tables.
func (t *table) create(flags uint32) error {
	encoder := netlink.NewAttributeEncoder()
	encoder.ByteOrder = bigEndian
	encoder.String(unix.NFTA_TABLE_NAME, t.nft.Name)
	encoder.Uint32(unix.NFTA_TABLE_FLAGS, flags)
	attributes, err := encoder.Encode()
	if err != nil {
		return err
	}
	message := func(kind netlink.HeaderType, flags netlink.HeaderFlags, family, resource byte, data []byte) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: kind, Flags: flags | netlink.Request},
			Data: append([]byte{family, unix.NFNETLINK_V0, 0, resource}, data...)}
	}
	const newTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
	if _, err := t.raw.SendMessages([]netlink.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, unix.NFNL_SUBSYS_NFTABLES, nil),
		message(newTable, netlink.Acknowledge|netlink.Create|netlink.Excl, byte(t.nft.Family), 0, attributes),
		message(unix.NFNL_MSG_BATCH_END, 0, 0, unix.NFNL_SUBSYS_NFTABLES, nil),
	}); err != nil {
		return err
	}
	_, err = t.raw.Receive()
	return err
}

// chain is what a chain is made of.
type chain struct {
	device              string
	ethernet, exclusive bool
	ports               Ports
	to                  int // not 0: the index of an interface that is given what is hidden, and what both get
}

// addChain makes the chain: from now on the packets are hidden.
func (t *table) addChain(c chain) error {
	name := chainShare
	if c.exclusive {
		name = chainAlone
	}
	chain := t.conn.AddChain(&nftables.Chain{Name: name, Table: t.nft, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookIngress, Priority: nftables.ChainPriorityFilter, Device: c.device})
	add := func(rule ...[]expr.Any) {
		var list []expr.Any
		for _, part := range rule {
			list = append(list, part...)
		}
		t.conn.AddRule(&nftables.Rule{Table: t.nft, Chain: chain, Exprs: list})
	}
	if c.ethernet {
		for _, kind := range []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD} {
			add(payload(expr.PayloadBaseLLHeader, 12, 2), is(big(kind)...), verdict(expr.VerdictAccept))
		}
	}
	if c.exclusive {
		add(c.hide())
		return t.flush()
	}
	set := func(name string, kind nftables.SetDatatype, constant ...byte) (*nftables.Set, error) {
		s := &nftables.Set{Table: t.nft, Name: name, KeyType: kind, Constant: len(constant) > 0, Interval: name == "ports"}
		var elements []nftables.SetElement
		for _, c := range constant {
			elements = append(elements, nftables.SetElement{Key: []byte{c}})
		}
		return s, t.conn.AddSet(s, elements)
	}
	addresses4, e1 := set("addresses4", nftables.TypeIPAddr)
	addresses6, e2 := set("addresses6", nftables.TypeIP6Addr)
	portSet, e3 := set("ports", nftables.TypeInetService)
	transports, e4 := set("transports", nftables.TypeInetProto, unix.IPPROTO_TCP, unix.IPPROTO_UDP)
	errors4, e5 := set("errors4", nftables.TypeICMPType, 3, 4, 5, 11, 12)
	errors6, e6 := set("errors6", nftables.TypeICMP6Type, 1, 2, 3, 4)
	if err := errors.Join(e1, e2, e3, e4, e5, e6, t.conn.SetAddElements(portSet, intervals(c.ports))); err != nil {
		return err
	}
	t.sets = map[bool]*nftables.Set{true: addresses4, false: addresses6}

	if c.to != 0 { // what both get: neighbours' answers, and below fragments
		add(meta(expr.MetaKeyPROTOCOL), is(big(unix.ETH_P_ARP)...), payload(expr.PayloadBaseNetworkHeader, 0, 8), is(0, 1, 8, 0, 6, 4, 0, 2),
			payload(expr.PayloadBaseNetworkHeader, 24, 4), in(addresses4), c.copy())
		add(meta(expr.MetaKeyPROTOCOL), is(big(unix.ETH_P_IPV6)...), payload(expr.PayloadBaseNetworkHeader, 6, 1), is(unix.IPPROTO_ICMPV6),
			payload(th, 0, 1), is(136), c.copy())
	}
	add(meta(expr.MetaKeyPKTTYPE), not(unix.PACKET_HOST), verdict(expr.VerdictAccept))
	// Not every kernel knows by itself that these have no ports.
	fragment4 := join(meta(expr.MetaKeyPROTOCOL), is(big(unix.ETH_P_IP)...), payload(expr.PayloadBaseNetworkHeader, 6, 2), mask(0x1f, 0xff), not(0, 0))
	fragment6 := join(meta(expr.MetaKeyPROTOCOL), is(big(unix.ETH_P_IPV6)...),
		[]expr.Any{&expr.Exthdr{DestRegister: 1, Type: unix.IPPROTO_FRAGMENT, Offset: 2, Len: 2, Op: expr.ExthdrOpIpv6}},
		mask(0xff, 0xf8), not(0, 0))
	if c.to != 0 {
		add(fragment4, payload(expr.PayloadBaseNetworkHeader, 16, 4), in(addresses4), c.copy())
		add(fragment6, payload(expr.PayloadBaseNetworkHeader, 24, 16), in(addresses6), c.copy())
	}
	add(fragment4, verdict(expr.VerdictAccept))
	add(fragment6, verdict(expr.VerdictAccept))
	for _, v := range []struct {
		protocol                  uint16
		destination               []expr.Any
		addresses, errors         *nftables.Set
		icmp, reply, request      byte
		innerPlain                []expr.Any
		innerProtocol, innerPorts uint32
	}{
		{
			unix.ETH_P_IP, payload(expr.PayloadBaseNetworkHeader, 16, 4), addresses4, errors4,
			unix.IPPROTO_ICMP, 0, 8,
			join(payload(th, 8, 1), is(0x45), payload(th, 14, 2), mask(0x1f, 0xff), is(0, 0)),
			8 + 9, 8 + 20,
		}, {
			unix.ETH_P_IPV6, payload(expr.PayloadBaseNetworkHeader, 24, 16), addresses6, errors6,
			unix.IPPROTO_ICMPV6, 129, 128,
			join(payload(th, 8, 1), mask(0xf0), is(0x60)),
			8 + 6, 8 + 40,
		},
	} {
		ours := join(meta(expr.MetaKeyPROTOCOL), is(big(v.protocol)...), v.destination, in(v.addresses))
		add(ours, meta(expr.MetaKeyL4PROTO), in(transports), payload(th, 2, 2), in(portSet), c.hide())
		ours = append(ours, join(meta(expr.MetaKeyL4PROTO), is(v.icmp))...)
		add(ours, payload(th, 0, 1), is(v.reply), payload(th, 4, 2), in(portSet), c.hide())
		ours = append(ours, join(payload(th, 0, 1), in(v.errors), v.innerPlain, payload(th, v.innerProtocol, 1))...)
		add(ours, in(transports), payload(th, v.innerPorts, 2), in(portSet), c.hide())
		add(ours, is(v.icmp), payload(th, v.innerPorts, 1), is(v.request), payload(th, v.innerPorts+4, 2), in(portSet), c.hide())
	}
	return t.flush()
}

func (t *table) flush() error {
	if err := t.conn.Flush(); err != nil {
		return explainTable(t.nft.Name, err)
	}
	return nil
}

// change adds and removes addresses, all at once.
func (t *table) change(add, remove []netip.Addr) error {
	for _, a := range add {
		if err := t.conn.SetAddElements(t.sets[a.Is4()], []nftables.SetElement{{Key: a.AsSlice()}}); err != nil {
			return err
		}
	}
	for _, a := range remove {
		if err := t.conn.SetDeleteElements(t.sets[a.Is4()], []nftables.SetElement{{Key: a.AsSlice()}}); err != nil {
			return err
		}
	}
	return t.flush()
}

// keep returns a copy of the socket that owns the table.
func (t *table) keep() (*os.File, error) {
	c, err := t.raw.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	e := c.Control(func(from uintptr) { fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(e, err); err != nil {
		return nil, fmt.Errorf("cannot copy the socket of nftables: %w", err)
	}
	return os.NewFile(uintptr(fd), "nftables"), nil
}

// close closes this process's copy of the socket.
func (t *table) close() error { return t.conn.CloseLasting() }

// The parts of rules.

const th = expr.PayloadBaseTransportHeader

func join(parts ...[]expr.Any) (rule []expr.Any) {
	for _, part := range parts {
		rule = append(rule, part...)
	}
	return rule
}

func big(n uint16) []byte { return []byte{byte(n >> 8), byte(n)} }

func meta(key expr.MetaKey) []expr.Any { return []expr.Any{&expr.Meta{Key: key, Register: 1}} }

func payload(base expr.PayloadBase, offset, length uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: length}}
}

func mask(bits ...byte) []expr.Any {
	return []expr.Any{&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(len(bits)), Mask: bits, Xor: make([]byte, len(bits))}}
}

func is(data ...byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}}
}

func not(data ...byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data}}
}

func in(s *nftables.Set) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// hide counts and drops; the stack's interface gets it first.
func (c chain) hide() []expr.Any {
	return append(c.copy(), &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}

// copy gives the stack's interface a copy, if there is one.
func (c chain) copy() []expr.Any {
	if c.to == 0 {
		return nil
	}
	return []expr.Any{&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint32(nil, uint32(c.to))}, &expr.Dup{RegDev: 1, IsRegDevSet: true}}
}

// intervals are the elements of a set of ranges: each begins one, or ends it after its last port.
func intervals(p Ports) (elements []nftables.SetElement) {
	if len(p) == 0 || p[0].First > 0 {
		elements = append(elements, nftables.SetElement{Key: big(0), IntervalEnd: true})
	}
	for _, r := range p {
		elements = append(elements, nftables.SetElement{Key: big(r.First)})
		if r.Last < 1<<16-1 {
			elements = append(elements, nftables.SetElement{Key: big(r.Last + 1), IntervalEnd: true})
		}
	}
	return elements
}
