// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests are the programs of `guise run --mode tun`: static ones, Go's, whatever cannot
 * be preloaded. They are in a network namespace of the host that has one interface
 * beside lo, a tun, and the stack has its other end. So everything that they, and
 * whatever they start, send to any address comes to the stack over that link.
 *
 * TCP ends there. All TCP that comes over the link is delivered to the stack itself,
 * whatever its destination (a rule of routing: iif, ipproto). A connection request waits
 * in the relays' queue, as one to a relayed address does (outward.c), while the relay
 * connects to the same destination over the stack's own TCP, the wire's; refusals,
 * unreachable hosts and time-outs are therefore the destination's own. Then both
 * connections are joined (stream.c). In the other direction, a connection request from
 * the wire to an address of the stack is carried on to the guests, with the client's own
 * address.
 *
 * Everything else is forwarded, with the stack's address in place of the guests': what
 * they send, the answers, ICMP errors about both; and datagrams that come from the wire
 * to ports of the stack on which it has no conversation yet. The stack is a router for the
 * guests only: nothing is forwarded except from and to them. Connections are not
 * tracked for TCP, which has no use for it.
 *
 * A process that may have a ticket may have the namespace, too, and enters it (control.c,
 * `guise run --stack`).
 *
 * Guests are not members, and have no ticket. The stack stays for them while the pipe's end
 * that the first one inherited is open; and also, since programs close descriptors that they
 * do not know, while any process is in their namespace. The end of that namespace cannot be
 * seen at the link, because the tun's descriptor keeps it; so the warden looks the processes up in
 * /proc, and so it does with the ports that guests serve.
 */
#include "holder/guests/guests.h"

#include "holder/carrier/ask.h"
#include "holder/relay/nft.h"

#include "host/sys.h"
#include "region/stack.h"
#include "region/wait.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE    0x6775 /* of routes: all addresses are the stack's own */
#define PRIORITY 100    /* of the rule that leads there: after the stack's real ones */

#define FORWARD "forward"
#define OUTWARD "outward"
#define INWARD  "inward"

/* include/uapi/linux/netfilter/nf_conntrack_common.h: IPS_SRC_NAT | IPS_DST_NAT */
#define TRANSLATED 0x30u

/* ---- the plan ------------------------------------------------------------------- */

static int parse_word(struct guests *g, const char *word)
{
	struct sockaddr_in *in = (void *)&g->address[0];
	struct sockaddr_in6 *in6 = (void *)&g->address[1];

	if (!strcmp(word, "mptcp"))
		g->mptcp = true;
	else if (inet_pton(AF_INET, word, &in->sin_addr) == 1)
		in->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, word, &in6->sin6_addr) == 1)
		in6->sin6_family = AF_INET6;
	else
		return guise_fail(EINVAL, "guests: \"%s\" is neither mptcp nor an address", word);
	return 0;
}

static int find_link(const struct guise_stack *s, const char *name)
{
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		if (s->region->links[i].used && !strcmp(s->region->links[i].name, name))
			return i;
	return -1;
}

int guests_parse(struct guests *g, struct guise_stack *s, char **word, int words)
{
	int end = 0, fd, link, ifindex, err = 0;
	struct stat st;

	if (g->ifindex)
		return guise_fail(EINVAL, "guests: there is one namespace of guests at most");
	if (sscanf(word[2], "fd=%d%n", &fd, &end) != 1 || word[2][end] || fstat(fd, &st))
		return guise_fail(EINVAL, "guests: \"%s\" is not fd=N, a network namespace",
				  word[2]);
	for (int i = 3; i < words && !err; i++)
		err = parse_word(g, word[i]);
	if (err)
		return err;
	ifindex = guise_ifindex(s, word[1]);
	link = find_link(s, word[1]);
	if (ifindex < 0)
		return ifindex;
	if (link < 0)
		return guise_fail(EINVAL, "guests: %s is no link", word[1]);
	g->ifindex = (uint32_t)ifindex;
	g->link = (uint32_t)link;
	g->netns = fd;
	g->inode = st.st_ino;
	return 0;
}

/* ---- ways ------------------------------------------------------------------------ */

/* All TCP of the link is for the stack itself. */
static int deliver(const struct guests *g, struct guise_stack *s, int family)
{
	struct rtmsg route = {
		.rtm_family = (unsigned char)family,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};
	struct fib_rule_hdr rule = { .family = (uint8_t)family, .action = FR_ACT_TO_TBL };
	struct guise_nl m;
	int err, lo = guise_ifindex(s, "lo");

	if (lo < 0)
		return lo;
	guise_nl_begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &route, sizeof(route));
	guise_nl_u32(&m, RTA_TABLE, TABLE);
	guise_nl_u32(&m, RTA_OIF, (uint32_t)lo);
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "the route of the guests");
	if (err)
		return err;
	guise_nl_begin(&m, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule, sizeof(rule));
	guise_nl_str(&m, FRA_IIFNAME, s->region->links[g->link].name);
	guise_nl_u8(&m, FRA_IP_PROTO, IPPROTO_TCP);
	guise_nl_u32(&m, FRA_TABLE, TABLE);
	guise_nl_u32(&m, FRA_PRIORITY, PRIORITY);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "the rule of the guests");
}

int guests_begin(const struct guests *g, struct guise_stack *s)
{
	int err = deliver(g, s, AF_INET);

	return err ? err : deliver(g, s, AF_INET6);
}

static void add_untracked(struct nft_batch *b, const char *chain, uint32_t hook)
{
	struct nft_rule r;

	nft_chain(b, chain, "filter", hook, NFT_PRIORITY_RAW, NF_ACCEPT);
	nft_rule_begin(&r, b, chain);
	nft_protocol_is(&r, IPPROTO_TCP);
	nft_expression(&r, "notrack");
	nft_expression_end(&r);
	nft_rule_end(&r, b);
}

/* Only what the guests send is forwarded, and what belongs to their conversations. */
static void add_forward(const struct guests *g, struct nft_batch *b)
{
	const uint32_t translated = TRANSLATED;
	struct nft_rule r;

	nft_chain(b, FORWARD, "filter", NF_INET_FORWARD, NFT_PRIORITY_FILTER, NF_DROP);
	nft_rule_begin(&r, b, FORWARD);
	nft_from_interface(&r, g->ifindex, true);
	nft_verdict(&r, NF_ACCEPT);
	nft_rule_end(&r, b);

	nft_rule_begin(&r, b, FORWARD);
	nft_to_interface(&r, g->ifindex, true);
	nft_expression(&r, "ct");
	nft_be32(&r.m, NFTA_CT_DREG, NFT_REG_1);
	nft_be32(&r.m, NFTA_CT_KEY, NFT_CT_STATUS);
	nft_expression_end(&r);
	nft_any_bit(&r, &translated, sizeof(translated));
	nft_verdict(&r, NF_ACCEPT);
	nft_rule_end(&r, b);
}

static const void *address(const struct guests *g, int k)
{
	if (g->address[k].ss_family == AF_INET)
		return &((const struct sockaddr_in *)&g->address[k])->sin_addr;
	if (g->address[k].ss_family == AF_INET6)
		return &((const struct sockaddr_in6 *)&g->address[k])->sin6_addr;
	return NULL;
}

/* The stack's address in place of theirs. */
static void add_outward(const struct guests *g, struct nft_batch *b, int k)
{
	struct nft_rule r;

	nft_rule_begin(&r, b, OUTWARD);
	nft_address_is(&r, k, false, address(g, k));
	nft_to_interface(&r, g->ifindex, false);
	nft_expression(&r, "masq");
	nft_expression_end(&r);
	nft_rule_end(&r, b);
}

/* Their address in place of the stack's. */
static void add_inward(const struct guests *g, struct nft_batch *b, int k)
{
	const uint32_t lo = 1;
	struct nft_rule r;

	nft_rule_begin(&r, b, INWARD);
	nft_family_is(&r, k);
	nft_protocol_is(&r, IPPROTO_UDP);
	nft_from_interface(&r, g->ifindex, false);
	nft_from_interface(&r, lo, false);
	nft_to_stack(&r);
	nft_expression(&r, "immediate");
	nft_be32(&r.m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	nft_value(&r, NFTA_IMMEDIATE_DATA, address(g, k), k ? 16 : 4);
	nft_expression_end(&r);
	nft_expression(&r, "nat");
	nft_be32(&r.m, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nft_be32(&r.m, NFTA_NAT_FAMILY, k ? NFPROTO_IPV6 : NFPROTO_IPV4);
	nft_be32(&r.m, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	nft_expression_end(&r);
	nft_rule_end(&r, b);
}

void guests_rules(const struct guests *g, struct nft_batch *b)
{
	add_untracked(b, "untracked-in", NF_INET_PRE_ROUTING);
	add_untracked(b, "untracked-out", NF_INET_LOCAL_OUT);
	add_forward(g, b);
	nft_chain(b, OUTWARD, "nat", NF_INET_POST_ROUTING, NFT_PRIORITY_SRCNAT, NF_ACCEPT);
	nft_chain(b, INWARD, "nat", NF_INET_PRE_ROUTING, NFT_PRIORITY_DSTNAT, NF_ACCEPT);
	for (int k = 0; k < 2; k++) {
		if (!address(g, k))
			continue;
		add_outward(g, b, k);
		add_inward(g, b, k);
	}
}

bool guests_server(const struct guests *g, const struct sockaddr_storage *dst,
		   struct sockaddr_storage *to)
{
	*to = g->address[dst->ss_family == AF_INET6];
	((struct sockaddr_in *)to)->sin_port = ((const struct sockaddr_in *)dst)->sin_port;
	return to->ss_family == dst->ss_family;
}

/* ---- the processes ---------------------------------------------------------------- */

/* A process that is there, or 0. Asked by the watch of members, and by the relays. */
static int find_guest(struct guests *g)
{
	int pid = __atomic_load_n(&g->pid, __ATOMIC_RELAXED);

	if (!g->ifindex)
		return 0;
	pid = ask_for_guest(pid);
	__atomic_store_n(&g->pid, pid, __ATOMIC_RELAXED);
	return pid;
}

bool guests_are_there(struct guests *g)
{
	return find_guest(g);
}

/* An address as /proc/net has it: words of 32 bits, each in the host's order. */
static void write_address(char *text, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;
	uint32_t word[4];

	if (a->ss_family == AF_INET) {
		sprintf(text, "%08X", in->sin_addr.s_addr);
		return;
	}
	memcpy(word, &in6->sin6_addr, sizeof(word));
	sprintf(text, "%08X%08X%08X%08X", word[0], word[1], word[2], word[3]);
}

#define ANY "00000000000000000000000000000000"

bool guests_listen(FILE *table, bool udp, const struct sockaddr_storage *server)
{
	const unsigned int wanted = udp ? 0x07 : 0x0a; /* include/net/tcp_states.h */
	uint16_t port = ntohs(((const struct sockaddr_in *)server)->sin_port);
	char line[512], own[33], address[33];
	unsigned int state, at;
	bool found = false;

	write_address(own, server);
	while (!found && fgets(line, sizeof(line), table))
		found = sscanf(line, "%*s %32[0-9A-F]:%x %*[0-9A-F]:%*x %x", address, &at,
			       &state) == 3 &&
			at == port && state == wanted &&
			(!strcmp(address, own) || !strncmp(address, ANY, strlen(address)));
	return found;
}

/* A socket that is bound to all IPv6 addresses takes IPv4 as well, unless it has IPV6_V6ONLY,
 * which /proc does not show: then the connection to it is refused later. */
bool guests_serve(struct guests *g, bool udp, const struct sockaddr_storage *server)
{
	bool found = false;
	FILE *table;
	int pid = find_guest(g), fd;

	if (!pid)
		return false;
	for (int k = server->ss_family == AF_INET6; k < 2 && !found; k++) {
		fd = ask_for_guest_table(pid, udp, k);
		table = fd < 0 ? NULL : fdopen(fd, "r");
		found = table && guests_listen(table, udp, server);
		if (table)
			fclose(table);
		else if (fd >= 0)
			close(fd);
	}
	return found;
}

bool guests_have_sent(const struct guests *g, const struct guise_stack *s)
{
	struct pollfd p = { .events = POLLIN };

	if (!g->ifindex || s->region->dead || !guise_link_live(s, g->link))
		return false;
	p.fd = s->port[g->link].fd[0];
	return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}
