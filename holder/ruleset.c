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
 *	... marked REFUSE			-> a TCP reset, as from a closed port
 *	... marked UNREACHABLE			-> ICMP host unreachable
 *	a datagram to a relayed address		-> tproxy: the relay's socket gets it
 *
 * tproxy asks for a connected socket first; so only the first datagram of a
 * conversation comes to the common socket, and other packets of a connection never
 * meet a rule.
 */
#include "ruleset.h"

#include "region/stack.h"
#include "setup/nl.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <string.h>

#define TABLE "guise"
#define CHAIN "relay"

#define PRIORITY_MANGLE (-150)

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

/* ---- writing rules ------------------------------------------------------------ */

/* All messages of one transaction. */
struct batch {
	size_t len;
	bool full;
	char buf[48 << 10];
};

static void add(struct batch *b, struct guise_nl *m)
{
	((struct nlmsghdr *)m->buf)->nlmsg_len = (uint32_t)m->len;
	if (m->full || b->len + m->len > sizeof(b->buf)) {
		b->full = true;
		return;
	}
	memcpy(b->buf + b->len, m->buf, m->len);
	b->len += m->len;
}

static void begin(struct guise_nl *m, int type, uint16_t flags)
{
	struct nfgenmsg body = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

	guise_nl_begin(m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &body, sizeof(body));
}

static void add_mark(struct batch *b, int type)
{
	struct nfgenmsg body = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };
	struct guise_nl m;

	guise_nl_begin(&m, (uint16_t)type, 0, &body, sizeof(body));
	((struct nlmsghdr *)m.buf)->nlmsg_flags = NLM_F_REQUEST;
	add(b, &m);
}

static void be32(struct guise_nl *m, uint16_t type, uint32_t value)
{
	guise_nl_u32(m, type, htonl(value));
}

#define NEST(type) ((type) | NLA_F_NESTED)

/* A rule and its list of expressions, while it is written. */
struct rule {
	struct guise_nl m;
	size_t list, element, data;
};

static void rule_begin(struct rule *r)
{
	begin(&r->m, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	guise_nl_str(&r->m, NFTA_RULE_TABLE, TABLE);
	guise_nl_str(&r->m, NFTA_RULE_CHAIN, CHAIN);
	r->list = guise_nl_nest(&r->m, NEST(NFTA_RULE_EXPRESSIONS), NULL, 0);
}

static void rule_end(struct rule *r, struct batch *b)
{
	guise_nl_end(&r->m, r->list);
	add(b, &r->m);
}

static void expression(struct rule *r, const char *name)
{
	r->element = guise_nl_nest(&r->m, NEST(NFTA_LIST_ELEM), NULL, 0);
	guise_nl_str(&r->m, NFTA_EXPR_NAME, name);
	r->data = guise_nl_nest(&r->m, NEST(NFTA_EXPR_DATA), NULL, 0);
}

static void expression_end(struct rule *r)
{
	guise_nl_end(&r->m, r->data);
	guise_nl_end(&r->m, r->element);
}

static void value(struct rule *r, uint16_t type, const void *data, size_t len)
{
	size_t nest = guise_nl_nest(&r->m, NEST(type), NULL, 0);

	guise_nl_put(&r->m, NFTA_DATA_VALUE, data, len);
	guise_nl_end(&r->m, nest);
}

static void is(struct rule *r, const void *data, size_t len)
{
	expression(r, "cmp");
	be32(&r->m, NFTA_CMP_SREG, NFT_REG_1);
	be32(&r->m, NFTA_CMP_OP, NFT_CMP_EQ);
	value(r, NFTA_CMP_DATA, data, len);
	expression_end(r);
}

static void meta_is(struct rule *r, uint32_t key, const void *data, size_t len)
{
	expression(r, "meta");
	be32(&r->m, NFTA_META_DREG, NFT_REG_1);
	be32(&r->m, NFTA_META_KEY, key);
	expression_end(r);
	is(r, data, len);
}

static void payload(struct rule *r, uint32_t base, uint32_t offset, uint32_t len)
{
	expression(r, "payload");
	be32(&r->m, NFTA_PAYLOAD_DREG, NFT_REG_1);
	be32(&r->m, NFTA_PAYLOAD_BASE, base);
	be32(&r->m, NFTA_PAYLOAD_OFFSET, offset);
	be32(&r->m, NFTA_PAYLOAD_LEN, len);
	expression_end(r);
}

/* Of the four flags that make a TCP segment what it is, only SYN. */
static void is_syn(struct rule *r)
{
	const uint8_t mask = TH_FIN | TH_SYN | TH_RST | TH_ACK, none = 0, syn = TH_SYN;

	payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	expression(r, "bitwise");
	be32(&r->m, NFTA_BITWISE_SREG, NFT_REG_1);
	be32(&r->m, NFTA_BITWISE_DREG, NFT_REG_1);
	be32(&r->m, NFTA_BITWISE_LEN, 1);
	value(r, NFTA_BITWISE_MASK, &mask, 1);
	value(r, NFTA_BITWISE_XOR, &none, 1);
	expression_end(r);
	is(r, &syn, 1);
}

static void family_is(struct rule *r, int k)
{
	const uint8_t family = k ? NFPROTO_IPV6 : NFPROTO_IPV4;

	meta_is(r, NFT_META_NFPROTO, &family, 1);
}

static void protocol_is(struct rule *r, uint8_t protocol)
{
	meta_is(r, NFT_META_L4PROTO, &protocol, 1);
}

static void mark_is(struct rule *r, uint32_t mark)
{
	meta_is(r, NFT_META_MARK, &mark, sizeof(mark));
}

static void to_map(struct rule *r, const struct relay_map *map)
{
	const struct sockaddr_in *in = (const void *)&map->from;
	const struct sockaddr_in6 *in6 = (const void *)&map->from;

	family_is(r, map->from.ss_family == AF_INET6);
	if (map->from.ss_family == AF_INET) {
		payload(r, NFT_PAYLOAD_NETWORK_HEADER, 16, 4);
		is(r, &in->sin_addr, 4);
	} else {
		payload(r, NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
		is(r, &in6->sin6_addr, 16);
	}
}

static void port_is(struct rule *r, const struct relay_map *map)
{
	uint16_t port = ((const struct sockaddr_in *)&map->from)->sin_port;

	if (!port)
		return;
	payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	is(r, &port, 2);
}

static void tproxy(struct rule *r, int k, uint16_t port)
{
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	size_t data, verdict;

	expression(r, "immediate");
	be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	value(r, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	expression_end(r);
	expression(r, "immediate");
	be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_2);
	if (k)
		value(r, NFTA_IMMEDIATE_DATA, &in6addr_loopback, 16);
	else
		value(r, NFTA_IMMEDIATE_DATA, &loopback, 4);
	expression_end(r);
	expression(r, "tproxy");
	be32(&r->m, NFTA_TPROXY_FAMILY, k ? NFPROTO_IPV6 : NFPROTO_IPV4);
	be32(&r->m, NFTA_TPROXY_REG_ADDR, NFT_REG_2);
	be32(&r->m, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	expression_end(r);
	expression(r, "immediate");
	be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = guise_nl_nest(&r->m, NEST(NFTA_IMMEDIATE_DATA), NULL, 0);
	verdict = guise_nl_nest(&r->m, NEST(NFTA_DATA_VERDICT), NULL, 0);
	be32(&r->m, NFTA_VERDICT_CODE, NF_ACCEPT);
	guise_nl_end(&r->m, verdict);
	guise_nl_end(&r->m, data);
	expression_end(r);
}

static void add_chain(struct batch *b)
{
	struct guise_nl m;
	size_t hook;

	begin(&m, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	guise_nl_str(&m, NFTA_TABLE_NAME, TABLE);
	add(b, &m);
	begin(&m, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	guise_nl_str(&m, NFTA_CHAIN_TABLE, TABLE);
	guise_nl_str(&m, NFTA_CHAIN_NAME, CHAIN);
	hook = guise_nl_nest(&m, NEST(NFTA_CHAIN_HOOK), NULL, 0);
	be32(&m, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	be32(&m, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY_MANGLE);
	guise_nl_end(&m, hook);
	be32(&m, NFTA_CHAIN_POLICY, NF_ACCEPT);
	guise_nl_str(&m, NFTA_CHAIN_TYPE, "filter");
	add(b, &m);
}

/* What comes back from the queue. */
static void add_answers(struct batch *b, const uint16_t port[2])
{
	struct rule r;

	for (int k = 0; k < 2; k++) {
		rule_begin(&r);
		family_is(&r, k);
		protocol_is(&r, IPPROTO_TCP);
		mark_is(&r, RULESET_GO);
		tproxy(&r, k, port[k]);
		rule_end(&r, b);
	}
	rule_begin(&r);
	protocol_is(&r, IPPROTO_TCP);
	mark_is(&r, RULESET_REFUSE);
	expression(&r, "reject");
	be32(&r.m, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
	guise_nl_u8(&r.m, NFTA_REJECT_ICMP_CODE, 0);
	expression_end(&r);
	rule_end(&r, b);

	rule_begin(&r);
	protocol_is(&r, IPPROTO_TCP);
	mark_is(&r, RULESET_UNREACHABLE);
	expression(&r, "reject");
	be32(&r.m, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	guise_nl_u8(&r.m, NFTA_REJECT_ICMP_CODE, NFT_REJECT_ICMPX_HOST_UNREACH);
	expression_end(&r);
	rule_end(&r, b);
}

static void add_map(struct batch *b, const struct relay_map *map, const uint16_t port[2])
{
	struct rule r;
	int k = map->from.ss_family == AF_INET6;

	rule_begin(&r);
	to_map(&r, map);
	protocol_is(&r, IPPROTO_TCP);
	port_is(&r, map);
	is_syn(&r);
	expression(&r, "queue");
	guise_nl_u16(&r.m, NFTA_QUEUE_NUM, htons(RULESET_QUEUE));
	guise_nl_u16(&r.m, NFTA_QUEUE_TOTAL, htons(1));
	expression_end(&r);
	rule_end(&r, b);

	rule_begin(&r);
	to_map(&r, map);
	protocol_is(&r, IPPROTO_UDP);
	port_is(&r, map);
	tproxy(&r, k, port[k]);
	rule_end(&r, b);
}

/* The kernel answers each message; the first error is the one that counts. */
static int answers(struct end *e)
{
	char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *h;
	int err = 0;
	long n;

	while ((n = end_call(e, recvfrom, buf, sizeof(buf), MSG_DONTWAIT, 0, 0)) > 0)
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			if (h->nlmsg_type == NLMSG_ERROR && !err)
				err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
	return err;
}

int ruleset_apply(const struct relay *r, const uint16_t stream_port[2],
		  const uint16_t datagram_port[2])
{
	static struct batch b;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct end e;
	long ret;

	memset(&b, 0, sizeof(b));
	add_mark(&b, NFNL_MSG_BATCH_BEGIN);
	add_chain(&b);
	add_answers(&b, stream_port);
	for (unsigned int i = 0; i < r->maps; i++)
		add_map(&b, &r->map[i], datagram_port);
	add_mark(&b, NFNL_MSG_BATCH_END);
	if (b.full)
		return guise_fail(EMSGSIZE, "too many relayed addresses");

	end_init(&e, (struct relay *)r, true, -1, NULL, NULL);
	ret = end_socket(&e, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	if (ret >= 0) {
		ret = end_call(&e, sendto, b.buf, b.len, 0, &kernel, sizeof(kernel));
		if (ret >= 0)
			ret = answers(&e);
		end_close(&e);
	}
	return ret < 0 ? guise_fail((int)-ret, "the rules of the relays: %s", strerror((int)-ret))
		       : 0;
}
