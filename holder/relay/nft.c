// SPDX-License-Identifier: GPL-2.0-only
/* nft.h has the theory. */
#include "holder/relay/nft.h"

#include "region/stack.h"

#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define NEST(type) ((type) | NLA_F_NESTED)

static void add(struct nft_batch *b, struct guise_nl *m)
{
	((struct nlmsghdr *)m->buf)->nlmsg_len = (uint32_t)m->len;
	if (m->full || b->len + m->len > sizeof(b->buf)) {
		b->full = true;
		return;
	}
	memcpy(b->buf + b->len, m->buf, m->len);
	b->len += m->len;
}

static void begin(struct guise_nl *m, const struct nft_batch *b, int type, uint16_t flags)
{
	struct nfgenmsg body = { .nfgen_family = b->family, .version = NFNETLINK_V0 };

	guise_nl_begin(m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &body, sizeof(body));
}

static void add_mark(struct nft_batch *b, int type)
{
	struct nfgenmsg body = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };
	struct guise_nl m;

	guise_nl_begin(&m, (uint16_t)type, 0, &body, sizeof(body));
	((struct nlmsghdr *)m.buf)->nlmsg_flags = NLM_F_REQUEST;
	add(b, &m);
}

void nft_be32(struct guise_nl *m, uint16_t type, uint32_t value)
{
	guise_nl_u32(m, type, htonl(value));
}

void nft_begin(struct nft_batch *b, uint8_t family, const char *table)
{
	struct guise_nl m;

	b->table = table;
	b->family = family;
	b->len = 0;
	b->full = false;
	add_mark(b, NFNL_MSG_BATCH_BEGIN);
	begin(&m, b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	guise_nl_str(&m, NFTA_TABLE_NAME, table);
	add(b, &m);
}

void nft_chain(struct nft_batch *b, const char *name, const char *type, uint32_t hook, int priority,
	       uint32_t policy)
{
	struct guise_nl m;
	size_t nest;

	begin(&m, b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	guise_nl_str(&m, NFTA_CHAIN_TABLE, b->table);
	guise_nl_str(&m, NFTA_CHAIN_NAME, name);
	nest = guise_nl_nest(&m, NEST(NFTA_CHAIN_HOOK), NULL, 0);
	nft_be32(&m, NFTA_HOOK_HOOKNUM, hook);
	nft_be32(&m, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	guise_nl_end(&m, nest);
	nft_be32(&m, NFTA_CHAIN_POLICY, policy);
	guise_nl_str(&m, NFTA_CHAIN_TYPE, type);
	add(b, &m);
}

void nft_plain_chain(struct nft_batch *b, const char *name)
{
	struct guise_nl m;

	begin(&m, b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	guise_nl_str(&m, NFTA_CHAIN_TABLE, b->table);
	guise_nl_str(&m, NFTA_CHAIN_NAME, name);
	add(b, &m);
}

void nft_rule_begin(struct nft_rule *r, const struct nft_batch *b, const char *chain)
{
	begin(&r->m, b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	guise_nl_str(&r->m, NFTA_RULE_TABLE, b->table);
	guise_nl_str(&r->m, NFTA_RULE_CHAIN, chain);
	r->list = guise_nl_nest(&r->m, NEST(NFTA_RULE_EXPRESSIONS), NULL, 0);
}

void nft_rule_end(struct nft_rule *r, struct nft_batch *b)
{
	guise_nl_end(&r->m, r->list);
	add(b, &r->m);
}

void nft_expression(struct nft_rule *r, const char *name)
{
	r->element = guise_nl_nest(&r->m, NEST(NFTA_LIST_ELEM), NULL, 0);
	guise_nl_str(&r->m, NFTA_EXPR_NAME, name);
	r->data = guise_nl_nest(&r->m, NEST(NFTA_EXPR_DATA), NULL, 0);
}

void nft_expression_end(struct nft_rule *r)
{
	guise_nl_end(&r->m, r->data);
	guise_nl_end(&r->m, r->element);
}

void nft_value(struct nft_rule *r, uint16_t type, const void *data, size_t len)
{
	size_t nest = guise_nl_nest(&r->m, NEST(type), NULL, 0);

	guise_nl_put(&r->m, NFTA_DATA_VALUE, data, len);
	guise_nl_end(&r->m, nest);
}

static void compare(struct nft_rule *r, uint32_t how, const void *data, size_t len)
{
	nft_expression(r, "cmp");
	nft_be32(&r->m, NFTA_CMP_SREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_CMP_OP, how);
	nft_value(r, NFTA_CMP_DATA, data, len);
	nft_expression_end(r);
}

void nft_is(struct nft_rule *r, const void *data, size_t len)
{
	compare(r, NFT_CMP_EQ, data, len);
}

void nft_is_not(struct nft_rule *r, const void *data, size_t len)
{
	compare(r, NFT_CMP_NEQ, data, len);
}

static void load_meta(struct nft_rule *r, uint32_t key)
{
	nft_expression(r, "meta");
	nft_be32(&r->m, NFTA_META_DREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_META_KEY, key);
	nft_expression_end(r);
}

void nft_meta_is(struct nft_rule *r, uint32_t key, const void *data, size_t len)
{
	load_meta(r, key);
	nft_is(r, data, len);
}

void nft_load_payload(struct nft_rule *r, uint32_t base, uint32_t offset, uint32_t len)
{
	nft_expression(r, "payload");
	nft_be32(&r->m, NFTA_PAYLOAD_DREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_PAYLOAD_BASE, base);
	nft_be32(&r->m, NFTA_PAYLOAD_OFFSET, offset);
	nft_be32(&r->m, NFTA_PAYLOAD_LEN, len);
	nft_expression_end(r);
}

void nft_payload_is(struct nft_rule *r, uint32_t base, uint32_t offset, const void *data,
		    size_t len)
{
	nft_load_payload(r, base, offset, (uint32_t)len);
	nft_is(r, data, len);
}

static void mask_with(struct nft_rule *r, const void *mask, size_t len)
{
	static const uint8_t none[4];

	nft_expression(r, "bitwise");
	nft_be32(&r->m, NFTA_BITWISE_SREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_BITWISE_DREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_BITWISE_LEN, (uint32_t)len);
	nft_value(r, NFTA_BITWISE_MASK, mask, len);
	nft_value(r, NFTA_BITWISE_XOR, none, len);
	nft_expression_end(r);
}

void nft_bits_are(struct nft_rule *r, const void *mask, const void *want, size_t len)
{
	mask_with(r, mask, len);
	nft_is(r, want, len);
}

void nft_any_bit(struct nft_rule *r, const void *mask, size_t len)
{
	static const uint8_t none[4];

	mask_with(r, mask, len);
	nft_is_not(r, none, len);
}

void nft_family_is(struct nft_rule *r, int k)
{
	const uint8_t family = k ? NFPROTO_IPV6 : NFPROTO_IPV4;

	nft_meta_is(r, NFT_META_NFPROTO, &family, 1);
}

void nft_protocol_is(struct nft_rule *r, uint8_t protocol)
{
	nft_meta_is(r, NFT_META_L4PROTO, &protocol, 1);
}

static void interface_is(struct nft_rule *r, uint32_t key, uint32_t ifindex, bool is)
{
	load_meta(r, key);
	compare(r, is ? NFT_CMP_EQ : NFT_CMP_NEQ, &ifindex, sizeof(ifindex));
}

void nft_from_interface(struct nft_rule *r, uint32_t ifindex, bool is)
{
	interface_is(r, NFT_META_IIF, ifindex, is);
}

void nft_to_interface(struct nft_rule *r, uint32_t ifindex, bool is)
{
	interface_is(r, NFT_META_OIF, ifindex, is);
}

void nft_to_stack(struct nft_rule *r)
{
	const uint32_t local = RTN_LOCAL;

	nft_expression(r, "fib");
	nft_be32(&r->m, NFTA_FIB_DREG, NFT_REG_1);
	nft_be32(&r->m, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nft_be32(&r->m, NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
	nft_expression_end(r);
	nft_is(r, &local, sizeof(local));
}

void nft_address_is(struct nft_rule *r, int k, bool destination, const void *addr)
{
	nft_family_is(r, k);
	if (k)
		nft_payload_is(r, NFT_PAYLOAD_NETWORK_HEADER, destination ? 24 : 8, addr, 16);
	else
		nft_payload_is(r, NFT_PAYLOAD_NETWORK_HEADER, destination ? 16 : 12, addr, 4);
}

static void decide(struct nft_rule *r, uint32_t code, const char *chain)
{
	size_t data, verdict;

	nft_expression(r, "immediate");
	nft_be32(&r->m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = guise_nl_nest(&r->m, NEST(NFTA_IMMEDIATE_DATA), NULL, 0);
	verdict = guise_nl_nest(&r->m, NEST(NFTA_DATA_VERDICT), NULL, 0);
	nft_be32(&r->m, NFTA_VERDICT_CODE, code);
	if (chain)
		guise_nl_str(&r->m, NFTA_VERDICT_CHAIN, chain);
	guise_nl_end(&r->m, verdict);
	guise_nl_end(&r->m, data);
	nft_expression_end(r);
}

void nft_verdict(struct nft_rule *r, uint32_t code)
{
	decide(r, code, NULL);
}

void nft_go_to(struct nft_rule *r, const char *chain)
{
	decide(r, (uint32_t)NFT_GOTO, chain);
}

/* The kernel answers each message; the first error is the one that counts. */
static long answers(struct guise_stack *s, long fd)
{
	char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *h;
	int err = 0;
	long n;

	while ((n = guise_call(s, GUISE_NR_recvfrom, fd, (long)buf, sizeof(buf), MSG_DONTWAIT, 0,
			       0)) > 0)
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			if (h->nlmsg_type == NLMSG_ERROR && !err)
				err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
	return err;
}

int nft_commit(struct guise_stack *s, struct nft_batch *b, const char *what)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	long fd, ret;

	add_mark(b, NFNL_MSG_BATCH_END);
	if (b->full)
		return guise_fail(EMSGSIZE, "%s: too many", what);
	fd = guise_call(s, GUISE_NR_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER,
			0, 0, 0);
	ret = fd;
	if (fd >= 0) {
		ret = guise_call(s, GUISE_NR_sendto, fd, (long)b->buf, (long)b->len, 0,
				 (long)&kernel, sizeof(kernel));
		if (ret >= 0)
			ret = answers(s, fd);
		guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	}
	return ret < 0 ? guise_fail((int)-ret, "%s: %s", what, strerror((int)-ret)) : 0;
}
