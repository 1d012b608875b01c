// SPDX-License-Identifier: GPL-2.0-only

// Package nat has the firewall and the sysctls by which the host forwards the
// packets of stacks and translates their addresses.
package nat

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/tap"
)

// Table is an nftables table for one stack and one IP version. Each stack has
// tables of its own, so that deleting them changes nothing else:
//
//	table ip guise_NAME {
//		chain postrouting {
//			type nat hook postrouting priority srcnat
//			ip saddr SUBNET oifname != "guise*" masquerade
//		}
//		chain forward {
//			type filter hook forward priority filter
//			iifname TAP accept
//			oifname TAP accept
//			iifname CLOSED oifname != "guise*" drop
//		}
//	}
//
// Packets between stacks are not translated. An accept in this table does not
// overrule a drop in another one.
type Table struct {
	Name   string
	Family nftables.TableFamily
	Taps   []string
	Stacks []netip.Prefix // the subnets of the stack's addresses
	Closed []string       // interfaces that forward for stacks only
}

var familyNames = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4:   "ip",
	nftables.TableFamilyIPv6:   "ip6",
	nftables.TableFamilyNetdev: "netdev",
}

// Version is the table's family as nft writes it.
func (t Table) Version() string { return familyNames[t.Family] }

// Add makes the table.
func (t Table) Add() error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("cannot reach nftables: %w", err)
	}
	nft := c.AddTable(&nftables.Table{Name: t.Name, Family: t.Family})
	postrouting := c.AddChain(&nftables.Chain{Name: "postrouting", Table: nft, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	for _, subnet := range t.Stacks {
		rule := append(sourceIs(subnet), interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpNeq, wildcard(tap.Prefix))...)
		c.AddRule(&nftables.Rule{Table: nft, Chain: postrouting, Exprs: append(rule, &expr.Masq{})})
	}
	forward := c.AddChain(&nftables.Chain{Name: "forward", Table: nft, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	verdict := func(kind expr.VerdictKind, rule []expr.Any) {
		c.AddRule(&nftables.Rule{Table: nft, Chain: forward, Exprs: append(rule, &expr.Verdict{Kind: kind})})
	}
	for _, name := range t.Taps {
		verdict(expr.VerdictAccept, interfaceIs(expr.MetaKeyIIFNAME, expr.CmpOpEq, exactly(name)))
		verdict(expr.VerdictAccept, interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpEq, exactly(name)))
	}
	for _, name := range t.Closed {
		verdict(expr.VerdictDrop, append(interfaceIs(expr.MetaKeyIIFNAME, expr.CmpOpEq, exactly(name)),
			interfaceIs(expr.MetaKeyOIFNAME, expr.CmpOpNeq, wildcard(tap.Prefix))...))
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("cannot make the nftables table %s %s, which translates for the stack: %w; does this kernel have "+
			"nf_tables with nat and masquerade (modprobe nft_masq)? --link none and --link tap:IFNAME do without",
			t.Version(), t.Name, err)
	}
	return nil
}

// Delete deletes a table. It is no error if there is none.
func Delete(family, name string) error {
	for number, word := range familyNames {
		if word != family {
			continue
		}
		c, err := nftables.New()
		if err != nil {
			return fmt.Errorf("cannot reach nftables: %w", err)
		}
		c.DelTable(&nftables.Table{Name: name, Family: number})
		err = c.Flush()
		for _, none := range []error{unix.ENOENT, unix.EINVAL, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT} {
			// The last three are those of a kernel without nf_tables.
			if errors.Is(err, none) {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("cannot delete the nftables table %s %s: %w", family, name, err)
		}
		return nil
	}
	return fmt.Errorf("unknown family %q of the nftables table %s", family, name)
}

// exactly and wildcard return the bytes that the name of an interface is compared with.
// The register has all 16 bytes of the name; fewer bytes compare its beginning.
func exactly(name string) []byte {
	whole := make([]byte, unix.IFNAMSIZ)
	copy(whole, name)
	return whole
}

func wildcard(prefix string) []byte { return []byte(prefix) }

func interfaceIs(which expr.MetaKey, op expr.CmpOp, name []byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: which, Register: 1},
		&expr.Cmp{Op: op, Register: 1, Data: name},
	}
}

func sourceIs(subnet netip.Prefix) []expr.Any {
	subnet = subnet.Masked()
	source := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}
	if subnet.Addr().Is6() {
		source.Offset, source.Len = 8, 16
	}
	mask := make([]byte, source.Len)
	for i := range subnet.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		source,
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: source.Len, Mask: mask, Xor: make([]byte, source.Len)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: subnet.Addr().AsSlice()},
	}
}
