// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of a stack's connections for the control socket. It may be long, and it comes in pages:
 * a client asks for the page from 0 on, and each page says from which number the next begins. A
 * listing is one client's, and goes on where its last page ended: the place is in the stack's
 * kernel (lib/setup/nl_dump.c), so that a page costs the same wherever it is, and of the list
 * only the cookies are kept (below). Any other number than 0 and the next is refused.
 *
 * It is four dumps, one after the other: of MPTCP and TCP connections, each over IPv4 and IPv6. A
 * connection of Multipath TCP and its subflows are rows of their own, which the client joins by
 * their token.
 *
 * The kernel keeps its place in a dump as a number within a chain of its table. When a connection
 * of that chain ends between two pieces, the next is passed over, although it stays. So there is a
 * second round of the same dumps, which adds those that the first has not seen; what it has is
 * known by cookies. That a connection is passed over twice is possible, and unlikely. One that
 * is seen twice in a round is given twice, and the client takes one.
 *
 * The name of an interface is that to which the socket is bound, or which has its local address;
 * addresses are looked up once, when the list begins.
 */
#include "holder/control/listing.h"

#include "holder/json.h"

#include "guise/syscall.h"
#include "region/stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define ROW_MOST 1024 /* bytes of a row are fewer */

/* An address of an interface. One of IPv4 is written as IPv6 writes it. */
struct place {
	uint8_t address[16];
	uint32_t index;
	char name[IFNAMSIZ];
};

static const struct {
	int family, protocol;
} parts[] = {
	{ AF_INET, IPPROTO_MPTCP },
	{ AF_INET6, IPPROTO_MPTCP },
	{ AF_INET, IPPROTO_TCP },
	{ AF_INET6, IPPROTO_TCP },
};

#define PARTS  (sizeof(parts) / sizeof(parts[0]))
#define ROUNDS 2

void listing_init(struct listing *l)
{
	memset(l, 0, sizeof(*l));
	guise_nl_dump_init(&l->dump);
}

void listing_end(struct listing *l)
{
	guise_nl_dump_end(&l->dump);
	free(l->places);
	free(l->cookies);
	listing_init(l);
}

/* ---- interfaces ------------------------------------------------------------------- */

static void widen(uint8_t *wide, int family, const void *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	if (family == AF_INET6) {
		memcpy(wide, address, 16);
		return;
	}
	memcpy(wide, mapped, sizeof(mapped));
	memcpy(wide + sizeof(mapped), address, 4);
}

struct found {
	int family;
	bool local, any;
	uint8_t address[16];
};

static void take_address(void *arg, unsigned int type, const void *data, size_t len)
{
	struct found *f = arg;

	/* Of a point-to-point interface IFA_ADDRESS is the peer's. */
	if ((type != IFA_LOCAL && (type != IFA_ADDRESS || f->local)) ||
	    len != (f->family == AF_INET ? 4 : 16))
		return;
	widen(f->address, f->family, data);
	f->local = f->local || type == IFA_LOCAL;
	f->any = true;
}

static int name_place(struct guise_stack *s, int fd, struct place *p)
{
	struct ifreq req = { .ifr_ifindex = (int)p->index };
	long ret = guise_call(s, GUISE_NR_ioctl, fd, SIOCGIFNAME, (long)&req, 0, 0, 0);

	if (ret)
		return (int)ret;
	memcpy(p->name, req.ifr_name, sizeof(p->name));
	p->name[sizeof(p->name) - 1] = '\0';
	return 0;
}

static int by_address(const void *a, const void *b)
{
	return memcmp(((const struct place *)a)->address, ((const struct place *)b)->address, 16);
}

static int add_place(struct listing *l, struct guise_stack *s, const struct nlmsghdr *h)
{
	struct found f = { 0 };
	struct ifaddrmsg m;
	struct place *p;

	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
		return 0;
	memcpy(&m, (const char *)h + NLMSG_HDRLEN, sizeof(m));
	if (m.ifa_family != AF_INET && m.ifa_family != AF_INET6)
		return 0;
	f.family = m.ifa_family;
	guise_nl_attributes((const char *)h + NLMSG_LENGTH(sizeof(m)),
			    h->nlmsg_len - NLMSG_LENGTH(sizeof(m)), take_address, &f);
	if (!f.any)
		return 0;
	p = reallocarray(l->places, l->n_places + 1, sizeof(*p));
	if (!p)
		return guise_fail(ENOMEM, "out of memory for the list of connections");
	l->places = p;
	p += l->n_places;
	p->index = m.ifa_index;
	memcpy(p->address, f.address, sizeof(p->address));
	/* One that has just gone has no name any more. */
	if (!name_place(s, l->dump.fd, p))
		l->n_places++;
	return 0;
}

static int find_places(struct listing *l, struct guise_stack *s)
{
	struct ifaddrmsg body = { .ifa_family = AF_UNSPEC };
	const struct nlmsghdr *h;
	struct guise_nl m;
	int err;

	guise_nl_begin(&m, RTM_GETADDR, NLM_F_DUMP, &body, sizeof(body));
	err = guise_nl_dump_begin(&l->dump, s, NETLINK_ROUTE, &m, "the list of addresses");
	while (!err && (h = guise_nl_dump_next(&l->dump, &err)))
		err = add_place(l, s, h);
	guise_nl_dump_end(&l->dump);
	if (l->n_places)
		qsort(l->places, l->n_places, sizeof(*l->places), by_address);
	return err;
}

static const char *interface_of(const struct listing *l, const struct guise_connection *c)
{
	const struct place *p;
	struct place key;

	if (c->mptcp) /* its subflows have theirs */
		return NULL;
	for (size_t i = 0; c->interface && i < l->n_places; i++)
		if (l->places[i].index == c->interface)
			return l->places[i].name;
	widen(key.address, c->family, c->local);
	p = l->n_places ? bsearch(&key, l->places, l->n_places, sizeof(key), by_address) : NULL;
	return p ? p->name : NULL;
}

/* ---- pages ------------------------------------------------------------------------ */

static void put_end(FILE *out, const char *key, int family, const uint8_t *address, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(family, address, text, sizeof(text));
	fprintf(out, family == AF_INET6 ? ",\"%s\":\"[%s]:%u\"" : ",\"%s\":\"%s:%u\"", key, text,
		port);
}

void listing_row(FILE *out, const struct guise_connection *c, const char *interface)
{
	fprintf(out, "{\"protocol\":\"%s\",\"state\":\"%s\"", c->mptcp ? "mptcp" : "tcp",
		guise_connection_state(c->state));
	put_end(out, "local", c->family, c->local, c->local_port);
	put_end(out, "remote", c->family, c->remote, c->remote_port);
	if (interface) {
		fputs(",\"interface\":", out);
		json_string(out, interface);
	}
	fprintf(out, ",\"inode\":%" PRIu32 ",\"uid\":%" PRIu32 ",\"cookie\":%" PRIu64, c->inode,
		c->uid, c->cookie);
	if (c->mptcp)
		fprintf(out, ",\"token\":%" PRIu32 ",\"fallback\":%s", c->token,
			c->fallback ? "true" : "false");
	if (c->subflow)
		fprintf(out,
			",\"subflow_of\":{\"token\":%" PRIu32 ",\"fallback\":%s,\"backup\":%s,"
			"\"local_id\":%u,\"remote_id\":%u}",
			c->token, c->fallback ? "true" : "false", c->backup ? "true" : "false",
			c->local_id, c->remote_id);
	if (c->counted)
		fprintf(out,
			",\"bytes\":{\"sent\":%" PRIu64 ",\"acked\":%" PRIu64
			",\"received\":%" PRIu64 ",\"retransmitted\":%" PRIu64 "}",
			c->sent, c->acked, c->received, c->resent);
	if (c->measured)
		fprintf(out,
			",\"path\":{\"rtt_us\":%" PRIu32 ",\"rttvar_us\":%" PRIu32
			",\"min_rtt_us\":%" PRIu32 ",\"cwnd\":%" PRIu32 ",\"mss\":%" PRIu32
			",\"cwnd_bytes\":%" PRIu64 ",\"retransmissions\":%" PRIu32 "}",
			c->rtt, c->rttvar, c->min_rtt, c->cwnd, c->mss, (uint64_t)c->cwnd * c->mss,
			c->retransmissions);
	putc('}', out);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Whether a connection is new: 1, 0 or -errno with a sentence. */
static int note(struct listing *l, uint64_t cookie)
{
	const size_t n = l->n_cookies;
	uint64_t *more;

	if (l->part >= PARTS)
		return !n || !bsearch(&cookie, l->cookies, n, sizeof(cookie), by_number);
	/* There is room up to the next power of two. */
	if (!(n & (n - 1))) {
		more = reallocarray(l->cookies, n ? 2 * n : 1, sizeof(cookie));
		if (!more)
			return guise_fail(ENOMEM, "out of memory for the list of connections");
		l->cookies = more;
	}
	l->cookies[l->n_cookies++] = cookie;
	return 1;
}

/* The next connection: 1, 0 at the end of all, or -errno with a sentence. */
static int next_connection(struct listing *l, struct guise_stack *s, struct guise_connection *c)
{
	const struct nlmsghdr *h;
	int err, new;

	for (; l->part < ROUNDS * PARTS; l->part++) {
		const int family = parts[l->part % PARTS].family;
		const int protocol = parts[l->part % PARTS].protocol;

		if (l->part == PARTS && l->dump.fd < 0 && l->n_cookies)
			qsort(l->cookies, l->n_cookies, sizeof(*l->cookies), by_number);
		err = l->dump.fd < 0 ? guise_connections_begin(&l->dump, s, family, protocol) : 0;
		while (!err && (h = guise_nl_dump_next(&l->dump, &err))) {
			if (!guise_connection_parse(h, protocol == IPPROTO_MPTCP, c))
				continue;
			new = note(l, c->cookie);
			if (new)
				return new;
		}
		/* A kernel may have been built without MPTCP, or without IPv6. */
		if (err && err != -ENOENT && err != -ENOPROTOOPT)
			return err;
	}
	return 0;
}

static int begin(struct listing *l, struct guise_stack *s, uint64_t from)
{
	if (!from) {
		listing_end(l);
		l->open = true;
		return find_places(l, s);
	}
	if (!l->open)
		return guise_fail(EINVAL,
				  "connections %" PRIu64 ": no list was begun that goes on there; "
				  "the first page is asked for by \"connections 0\"",
				  from);
	if (from != l->given)
		return guise_fail(EINVAL,
				  "connections %" PRIu64 ": the list goes on from %" PRIu64
				  ", or begins anew from 0",
				  from, l->given);
	return 0;
}

/* The rows of a page. Whether there may be more: 1, 0, or -errno with a sentence. */
static int put_rows(struct listing *l, struct guise_stack *s, FILE *out)
{
	struct guise_connection c;
	bool first = true;
	int more;

	while (ftell(out) < LISTING_PAGE - 2 * ROW_MOST) {
		more = next_connection(l, s, &c);
		if (more <= 0)
			return more;
		if (!first)
			putc(',', out);
		first = false;
		listing_row(out, &c, interface_of(l, &c));
		l->given++;
	}
	return 1;
}

char *listing_page(struct listing *l, struct guise_stack *s, uint64_t from)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = NULL;
	int more;

	more = begin(l, s, from);
	if (more && from)
		return NULL; /* and the list goes on where it was */
	if (!more) {
		out = open_memstream(&text, &size);
		more = out ? 0 : guise_fail(ENOMEM, "out of memory for the list of connections");
	}
	if (!more) {
		fprintf(out, "{\"from\":%" PRIu64 ",\"connections\":[", from);
		more = put_rows(l, s, out);
		if (more > 0)
			fprintf(out, "],\"next\":%" PRIu64 "}", l->given);
		else
			fputs("]}", out);
	}
	if (out && fclose(out) && more >= 0)
		more = guise_fail(ENOMEM, "out of memory for the list of connections");
	if (more <= 0)
		listing_end(l);
	if (more >= 0)
		return text;
	free(text);
	return NULL;
}
