// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes and rules inside the stack, for addresses that stand for the host's.
 *
 * Such an address has a route of type local, and no interface: interfaces,
 * addresses and what programs conclude from them stay as they were. IPv4 sends to
 * it from 127.0.0.1, so that an answer never looks like a question.
 *
 * One chain before routing, in the inet table "guise", without connection tracking:
 *
 *	a connection request (SYN) to a relayed address	-> the queue (outward.c)
 *	... come back from it, marked GO	-> tproxy: the relay's listener accepts it
 *	... which tproxy does not take		-> dropped: it comes back only once
 *	... marked REFUSE			-> a TCP reset, as from a closed port
 *	... marked UNREACHABLE			-> ICMP host unreachable
 *	a datagram to a relayed address		-> tproxy: the relay's socket gets it
 *
 * tproxy asks for a connected socket first; so only the first datagram of a
 * conversation comes to the common socket, and other packets of a connection never
 * meet a rule.
 *
 * tproxy does not take every SYN: not one whose header is cut short, and not one with
 * the addresses and ports of a connection that is no relay's.
 *
 * All this is for programs of the stack, which send over lo, and for guests. What comes
 * from any other interface comes from the wire, and another chain has it: packets to or
 * from an address that stands for one of the host's are dropped there, so that nobody
 * on the wire reaches the host by it, or answers in its place. The source must be looked
 * at because IPv6 takes packets with an address of its own from anywhere. A second
 * table, "arp guise", has such addresses not be found on a link, where another machine
 * may have them.
 *
 * Where there are guests (guests.c), their connection requests go to the queue
 * wherever they lead, and so do those that come from the wire to an address of the
 * stack.
 */
#include "holder/relay/ruleset.h"

#include "holder/guests/guests.h"
#include "holder/relay/nft.h"

#include "region/stack.h"
#include "setup/nl.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter_arp.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <string.h>

#define TABLE "guise"
#define CHAIN "relay"
#define WIRE  "wire"

#define LO 1u /* its number on every stack */

/* Of an ARP packet about IPv4 over Ethernet: the address that is asked for. */
#define ARP_TARGET 24

int ruleset_local(struct guise_stack *s, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct rtmsg body = {
		.rtm_family = (unsigned char)addr->ss_family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_LOCAL,
	};
	struct guise_nl m;
	int lo = guise_ifindex(s, "lo");

	if (lo < 0)
		return lo;
	if (addr->ss_family == AF_INET) {
		body.rtm_scope = RT_SCOPE_HOST;
		body.rtm_dst_len = 32;
	} else {
		body.rtm_dst_len = 128;
	}
	guise_nl_begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof(body));
	guise_nl_u32(&m, RTA_OIF, (uint32_t)lo);
	if (addr->ss_family == AF_INET) {
		guise_nl_put(&m, RTA_DST, &in->sin_addr, 4);
		guise_nl_put(&m, RTA_PREFSRC, &loopback, 4);
	} else {
		guise_nl_put(&m, RTA_DST, &in6->sin6_addr, 16);
	}
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "the address of a relay");
}

static void address_is(struct nft_rule *r, bool destination, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;

	if (a->ss_family == AF_INET)
		nft_address_is(r, 0, destination, &in->sin_addr);
	else
		nft_address_is(r, 1, destination, &in6->sin6_addr);
}

static void port_is(struct nft_rule *r, const struct relay_map *map)
{
	uint16_t port = ((const struct sockaddr_in *)&map->from)->sin_port;

	if (port)
		nft_payload_is(r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, &port, 2);
}

/* Of the four flags that make a TCP segment what it is, only SYN. */
static void is_syn(struct nft_rule *r)
{
	const uint8_t mask = TH_FIN | TH_SYN | TH_RST | TH_ACK, syn = TH_SYN;

	nft_load_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	nft_bits_are(r, &mask, &syn, 1);
}

static void to_queue(struct nft_rule *r)
{
	nft_expression(r, "queue");
	guise_nl_u16(&r->m, NFTA_QUEUE_NUM, htons(RULESET_QUEUE));
	guise_nl_u16(&r->m, NFTA_QUEUE_TOTAL, htons(1));
	nft_expression_end(r);
}

static void tproxy(struct nft_rule *r, int k, uint16_t port)
{
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };

	nft_expression(r, "immediate");
	nft_be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	nft_value(r, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	nft_expression_end(r);
	nft_expression(r, "immediate");
	nft_be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_2);
	if (k)
		nft_value(r, NFTA_IMMEDIATE_DATA, &in6addr_loopback, 16);
	else
		nft_value(r, NFTA_IMMEDIATE_DATA, &loopback, 4);
	nft_expression_end(r);
	nft_expression(r, "tproxy");
	nft_be32(&r->m, NFTA_TPROXY_FAMILY, k ? NFPROTO_IPV6 : NFPROTO_IPV4);
	nft_be32(&r->m, NFTA_TPROXY_REG_ADDR, NFT_REG_2);
	nft_be32(&r->m, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	nft_expression_end(r);
	nft_verdict(r, NF_ACCEPT);
}

static void add_reject(struct nft_batch *b, uint32_t mark, uint32_t type, uint8_t code)
{
	struct nft_rule r;

	nft_rule_begin(&r, b, CHAIN);
	nft_protocol_is(&r, IPPROTO_TCP);
	nft_meta_is(&r, NFT_META_MARK, &mark, sizeof(mark));
	nft_expression(&r, "reject");
	nft_be32(&r.m, NFTA_REJECT_TYPE, type);
	guise_nl_u8(&r.m, NFTA_REJECT_ICMP_CODE, code);
	nft_expression_end(&r);
	nft_rule_end(&r, b);
}

/* What comes back from the queue. */
static void add_answers(struct nft_batch *b, const uint16_t port[2])
{
	const uint32_t go = RULESET_GO;
	struct nft_rule r;

	for (int k = 0; k < 2; k++) {
		nft_rule_begin(&r, b, CHAIN);
		nft_family_is(&r, k);
		nft_protocol_is(&r, IPPROTO_TCP);
		nft_meta_is(&r, NFT_META_MARK, &go, sizeof(go));
		tproxy(&r, k, port[k]);
		nft_rule_end(&r, b);
	}
	nft_rule_begin(&r, b, CHAIN);
	nft_protocol_is(&r, IPPROTO_TCP);
	nft_meta_is(&r, NFT_META_MARK, &go, sizeof(go));
	nft_verdict(&r, NF_DROP);
	nft_rule_end(&r, b);
	add_reject(b, RULESET_REFUSE, NFT_REJECT_TCP_RST, 0);
	add_reject(b, RULESET_UNREACHABLE, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_HOST_UNREACH);
	add_reject(b, RULESET_NO_ROUTE, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_NO_ROUTE);
}

static void add_map(struct nft_batch *b, const struct relay_map *map, const uint16_t port[2])
{
	struct nft_rule r;
	int k = map->from.ss_family == AF_INET6;

	nft_rule_begin(&r, b, CHAIN);
	address_is(&r, true, &map->from);
	nft_protocol_is(&r, IPPROTO_TCP);
	port_is(&r, map);
	is_syn(&r);
	to_queue(&r);
	nft_rule_end(&r, b);

	nft_rule_begin(&r, b, CHAIN);
	address_is(&r, true, &map->from);
	nft_protocol_is(&r, IPPROTO_UDP);
	port_is(&r, map);
	tproxy(&r, k, port[k]);
	nft_rule_end(&r, b);
}

/* All connection requests of the guests. */
static void add_requests(struct nft_batch *b, uint32_t guests)
{
	struct nft_rule r;

	nft_rule_begin(&r, b, CHAIN);
	nft_from_interface(&r, guests, true);
	nft_protocol_is(&r, IPPROTO_TCP);
	is_syn(&r);
	to_queue(&r);
	nft_rule_end(&r, b);
}

static void add_drop(struct nft_batch *b, bool destination, const struct sockaddr_storage *a)
{
	struct nft_rule r;

	nft_rule_begin(&r, b, WIRE);
	address_is(&r, destination, a);
	nft_verdict(&r, NF_DROP);
	nft_rule_end(&r, b);
}

/* What comes from the wire leaves the relays' chain for another one. */
static void add_wire(struct nft_batch *b, const struct relay *relay, uint32_t guests)
{
	struct nft_rule r;

	nft_plain_chain(b, WIRE);
	nft_rule_begin(&r, b, CHAIN);
	nft_from_interface(&r, LO, false);
	if (guests)
		nft_from_interface(&r, guests, false);
	nft_go_to(&r, WIRE);
	nft_rule_end(&r, b);
	for (unsigned int i = 0; i < relay->n_hosts; i++) {
		add_drop(b, true, &relay->hosts[i]);
		add_drop(b, false, &relay->hosts[i]);
	}
	if (!guests)
		return;
	nft_rule_begin(&r, b, WIRE);
	nft_protocol_is(&r, IPPROTO_TCP);
	is_syn(&r);
	nft_to_stack(&r);
	to_queue(&r);
	nft_rule_end(&r, b);
}

static int hide(const struct relay *relay, struct nft_batch *b)
{
	struct nft_rule r;

	nft_begin(b, NFPROTO_ARP, TABLE);
	nft_chain(b, CHAIN, "filter", NF_ARP_IN, NFT_PRIORITY_FILTER, NF_ACCEPT);
	for (unsigned int i = 0; i < relay->n_hosts; i++) {
		const struct sockaddr_in *in = (const void *)&relay->hosts[i];

		if (in->sin_family != AF_INET)
			continue;
		nft_rule_begin(&r, b, CHAIN);
		nft_payload_is(&r, NFT_PAYLOAD_NETWORK_HEADER, ARP_TARGET, &in->sin_addr, 4);
		nft_verdict(&r, NF_DROP);
		nft_rule_end(&r, b);
	}
	return nft_commit(relay->engine.s, b, "the rules that hide the relays from the links");
}

int ruleset_apply(const struct relay *r)
{
	static struct nft_batch b;
	uint32_t guests = guests_interface(&r->guests);
	int err;

	nft_begin(&b, NFPROTO_INET, TABLE);
	nft_chain(&b, CHAIN, "filter", NF_INET_PRE_ROUTING, NFT_PRIORITY_MANGLE, NF_ACCEPT);
	if (r->maps || guests)
		add_answers(&b, r->stream_port);
	add_wire(&b, r, guests);
	for (unsigned int i = 0; i < r->maps; i++)
		add_map(&b, &r->map[i], r->datagram_port);
	if (guests) {
		add_requests(&b, guests);
		guests_rules(&r->guests, &b);
	}
	err = nft_commit(r->engine.s, &b, "the rules of the relays");
	return err ? err : hide(r, &b);
}
