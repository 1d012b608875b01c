// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks the stack's own lookup, by sock_diag, which socket would get a packet: so that
 * wildcards, IPv6 sockets that take IPv4, and programs that serve one address only are
 * all seen as the stack sees them. Nothing is sent to the program.
 */
#include "holder/relay/served.h"

#include "setup/nl.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

struct answer {
	bool udp, yes;
};

static void hear(const struct nlmsghdr *h, void *arg)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	struct answer *a = arg;

	if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY && h->nlmsg_len >= NLMSG_LENGTH(sizeof(*m)))
		a->yes = a->udp || m->idiag_state == TCP_LISTEN;
}

static void fill(void *field, uint16_t *port, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;

	*port = in->sin_port;
	if (a->ss_family == AF_INET)
		memcpy(field, &in->sin_addr, 4);
	else
		memcpy(field, &in6->sin6_addr, 16);
}

bool served(struct guise_stack *s, bool udp, const struct sockaddr_storage *from,
	    const struct sockaddr_storage *to)
{
	struct inet_diag_req_v2 q = {
		.sdiag_family = (uint8_t)to->ss_family,
		.sdiag_protocol = udp ? IPPROTO_UDP : IPPROTO_TCP,
		.idiag_states = ~0u,
		.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
	};
	struct answer a = { .udp = udp };
	struct guise_nl m;

	/* TCP calls the server's end src; UDP has them the other way round. */
	fill(q.id.idiag_src, &q.id.idiag_sport, udp ? from : to);
	fill(q.id.idiag_dst, &q.id.idiag_dport, udp ? to : from);
	guise_nl_begin(&m, SOCK_DIAG_BY_FAMILY, 0, &q, sizeof(q));
	guise_nl_talk(s, NETLINK_SOCK_DIAG, &m, hear, &a, "a look for a server");
	return a.yes;
}
