// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/plan"
)

// firewall looks for rules that keep the host from translating and forwarding for a
// tap. This needs CAP_NET_ADMIN.
func (e *examination) firewall() {
	if e.Way == plan.Passt {
		return
	}
	if !access.Capability(unix.CAP_NET_ADMIN) {
		e.find("firewall", OK, "", "only root can see whether a firewall drops what is forwarded: sudo guise doctor looks")
		return
	}
	c, err := nftables.New()
	if err != nil {
		e.find("firewall", Bad, "modprobe nf_tables", "nftables cannot be reached: %v", err)
		return
	}
	chains, err := c.ListChains()
	if err != nil {
		e.find("firewall", Bad, "modprobe nf_tables nft_masq; --link passt and --link tap:IFNAME do without",
			"this kernel has no nftables (%v), by which the host translates for a tap", err)
		return
	}
	found := false
	for _, chain := range chains {
		if !drops(chain) {
			continue
		}
		if rules, err := c.GetRules(chain.Table, chain); err == nil && knowsGuise(rules) {
			continue
		}
		found = true
		e.dropped(chain, chains)
	}
	if !found {
		e.find("firewall", OK, "", "nftables is there, and no chain drops what is forwarded by default")
	}
}

// drops reports whether a chain drops forwarded packets by default.
func drops(chain *nftables.Chain) bool {
	return chain.Hooknum != nil && *chain.Hooknum == *nftables.ChainHookForward &&
		chain.Policy != nil && *chain.Policy == nftables.ChainPolicyDrop &&
		chain.Table.Family != nftables.TableFamilyARP && chain.Table.Family != nftables.TableFamilyBridge
}

// knowsGuise reports whether a rule names the taps of stacks.
func knowsGuise(rules []*nftables.Rule) bool {
	for _, r := range rules {
		for _, e := range r.Exprs {
			if cmp, ok := e.(*expr.Cmp); ok && bytes.HasPrefix(cmp.Data, []byte("guise")) {
				return true
			}
		}
	}
	return false
}

// dropped names the firewall that a chain belongs to. It knows that by the other chains in
// the table.
func (e *examination) dropped(chain *nftables.Chain, all []*nftables.Chain) {
	whose, next := "a firewall's", "let packets from and to guise* pass there (iifname \"guise*\" accept; oifname \"guise*\" accept)"
	for _, other := range all {
		switch {
		case other.Table.Name != chain.Table.Name || other.Table.Family != chain.Table.Family:
		case other.Name == "DOCKER-USER":
			whose = "Docker's"
			next = "sudo iptables -I DOCKER-USER -i guise+ -j ACCEPT; sudo iptables -I DOCKER-USER -o guise+ -j ACCEPT"
			if chain.Table.Family == nftables.TableFamilyIPv6 {
				next = strings.ReplaceAll(next, "iptables", "ip6tables")
			}
		case strings.HasPrefix(other.Name, "ufw"):
			whose = "ufw's"
			next = "sudo ufw default allow routed, or sudo ufw route allow in on guise0; sudo ufw route allow out on guise0 for each tap"
		}
	}
	family := map[nftables.TableFamily]string{nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6",
		nftables.TableFamilyINet: "inet"}[chain.Table.Family]
	e.find("firewall", Note, next, "the chain %s of the table %s %s, %s, drops what is forwarded by default: a stack behind a tap reaches "+
		"this host and nothing beyond it", chain.Name, family, chain.Table.Name, whose)
}

// advertisements finds interfaces that forward IPv6 and therefore ignore router
// advertisements: the host loses its default route when the route's lifetime is over.
func (e *examination) advertisements() {
	const root = "/proc/sys/net/ipv6/conf"
	entries, _ := os.ReadDir(root)
	read := func(parts ...string) string {
		text, _ := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
		return strings.TrimSpace(string(text))
	}
	for _, entry := range entries {
		name := entry.Name()
		if name == "all" || name == "default" || name == "lo" || strings.HasPrefix(name, "guise") {
			continue
		}
		if read(name, "forwarding") == "1" && read(name, "accept_ra") == "1" && read(name, "disable_ipv6") == "0" {
			e.find("advertisements", Note, "sysctl net.ipv6.conf."+name+".accept_ra=2, if its IPv6 default route comes from a router",
				"%s forwards IPv6, and so does not listen to router advertisements any more (accept_ra is 1)", name)
		}
	}
}
