// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP from the stack to relayed addresses, and that of guests (guests.c).
 *
 * A connection must not be accepted before it is known whether its other end accepts
 * it: a program that finds a port closed expects ECONNREFUSED from connect(), not a
 * connection that is reset. So the request itself, the SYN, waits in a queue
 * (nfnetlink_queue) while the relay connects onward: to a relayed address on the host;
 * from a guest to the same destination, over the stack; from the wire to a guest, over
 * their link, with the client's own address.
 *
 *	connected	the SYN goes on, marked; tproxy gives it to the relay's
 *			listener, and both connections are joined (stream.c); but see
 *			question_ready() for name servers
 *	refused		the SYN goes on, marked, and is answered by a reset
 *	no way there	... by ICMP host or network unreachable
 *	no answer	it is dropped; the program's own connect() times out as ever
 *
 * The rules are in ruleset.c. A relayed address serves whoever asks: a program of the
 * stack (over lo), or a guest.
 *
 * At most MOST requests are in the queue; further ones are dropped, and TCP repeats
 * them, or they displace the oldest, if that has been there for SOON_MS. One that was let
 * through and then not accepted is given up after a while. Each
 * packet comes to the queue once, whatever becomes of it after that (ruleset.c); and
 * each turn takes ROUNDS of them, so that no flood keeps the thread from its end.
 */
#include "holder/relay/outward.h"

#include "relay/datagram.h"
#include "holder/guests/guests.h"
#include "holder/relay/ruleset.h"
#include "relay/stream.h"

#include "region/stack.h"
#include "setup/nl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <string.h>

#define MOST        4096
#define PATIENCE_MS 20000
#define SOON_MS     1000
#define HEADERS     128 /* of a packet, that are looked at */
#define ROUNDS      64  /* of requests in one turn: the clock and the other ends have theirs */
#define QUEUE_BYTES (8 << 20)

struct pending {
	struct grave grave;
	struct table_entry entry;
	struct list place;    /* in the relay's pendings */
	struct end onward;    /* its own end of the connection that it makes */
	struct end questions; /* ... and of that which the program has made: see below */
	struct sockaddr_storage client, dst;
	uint32_t packet; /* in the queue */
	bool connected;
	bool to_guest; /* whose end of both is the onward one */
	bool resolver; /* at the other end of the onward one */
	uint64_t since;
};

static bool same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family || a4->sin_port != b4->sin_port)
		return false;
	return a->ss_family == AF_INET ? a4->sin_addr.s_addr == b4->sin_addr.s_addr
				       : !memcmp(&a6->sin6_addr, &b6->sin6_addr, 16);
}

bool outward_map(struct relay *r, const struct sockaddr_storage *dst, struct outward_target *t)
{
	const in_port_t port = ((const struct sockaddr_in *)dst)->sin_port;

	*t = (struct outward_target){ 0 };
	for (unsigned int i = 0; i < r->maps; i++) {
		const struct relay_map *m = &r->map[i];
		struct resolvers_link link;
		struct sockaddr_storage from = m->from;
		struct sockaddr_in *in = (void *)&from;

		if (!in->sin_port)
			in->sin_port = port;
		if (!same(&from, dst))
			continue;
		t->to = m->to;
		t->inside = m->inside;
		t->resolver = m->resolver;
		if (m->number >= 0 &&
		    resolvers_of_link(&r->resolvers, (unsigned int)m->number, &link)) {
			t->to = link.server;
			t->inside = true;
			memcpy(t->ifname, link.ifname, sizeof(t->ifname));
		} else if (m->number >= 0) {
			t->to = *resolvers_server(&r->resolvers, (unsigned int)m->number);
			t->inside = !resolvers_is_hosts(&t->to);
		}
		if (!((struct sockaddr_in *)&t->to)->sin_port)
			((struct sockaddr_in *)&t->to)->sin_port = port;
		return true;
	}
	return false;
}

static bool is_resolver(const struct relay *r, const struct sockaddr_storage *dst)
{
	for (unsigned int i = 0; i < r->maps; i++)
		if (r->map[i].resolver && same(&r->map[i].from, dst))
			return true;
	return false;
}

bool outward_route(struct engine *g, const struct sockaddr_storage *dst, struct engine_route *route)
{
	struct outward_target t;

	if (!outward_map(relay_of(g), dst, &t))
		return false;
	route->to = t.to;
	route->inside = t.inside;
	memcpy(route->ifname, t.ifname, sizeof(route->ifname));
	return true;
}

_Static_assert(NAMES_ANSWER <= ENGINE_ANSWER, "the engine has room for the answers");

size_t outward_answer(struct engine *g, const struct sockaddr_storage *dst, const void *query,
		      size_t length, uint8_t answer[NAMES_ANSWER])
{
	const struct relay *r = relay_of(g);

	return r->names.n && is_resolver(r, dst) ? names_answer(&r->names, query, length, answer)
						 : 0;
}

static void give_up(struct pending *p)
{
	end_close(&p->onward);
	end_close(&p->questions);
	list_remove(&p->place);
	table_remove(&relay_of(p->onward.engine)->pending, &p->entry);
	engine_bury(p->onward.engine, &p->grave);
}

/* Packets do not say which link an address is of; accept() does. */
static void pending_key(struct table_key *key, const struct sockaddr_storage *client,
			const struct sockaddr_storage *dst)
{
	table_key(key, NULL, client, dst);
	key->scope[0] = key->scope[1] = 0;
}

static struct pending *find(struct relay *r, const struct sockaddr_storage *client,
			    const struct sockaddr_storage *dst)
{
	struct table_entry *entry;
	struct table_key key;

	pending_key(&key, client, dst);
	entry = table_find(&r->pending, &key);
	return entry ? list_of(entry, struct pending, entry) : NULL;
}

/* ---- the queue ----------------------------------------------------------------- */

static long tell_queue(struct relay *r, struct guise_nl *m)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *h = (void *)m->buf;

	h->nlmsg_len = (uint32_t)m->len;
	h->nlmsg_flags = NLM_F_REQUEST;
	return end_call(&r->queue, sendto, m->buf, m->len, 0, &kernel, sizeof(kernel));
}

static void queue_message(struct guise_nl *m, int type)
{
	struct nfgenmsg body = { .version = NFNETLINK_V0, .res_id = htons(RULESET_QUEUE) };

	guise_nl_begin(m, (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type), 0, &body, sizeof(body));
}

/* mark 0: drop. */
static void verdict(struct relay *r, uint32_t packet, uint32_t mark)
{
	struct nfqnl_msg_verdict_hdr v = { htonl(mark ? NF_REPEAT : NF_DROP), htonl(packet) };
	struct guise_nl m;

	queue_message(&m, NFQNL_MSG_VERDICT);
	guise_nl_put(&m, NFQA_VERDICT_HDR, &v, sizeof(v));
	if (mark)
		guise_nl_u32(&m, NFQA_MARK, htonl(mark));
	tell_queue(r, &m);
}

static uint32_t mark_of(int err)
{
	switch (-err) {
	case 0:
		return RULESET_GO;
	case ECONNREFUSED:
		return RULESET_REFUSE;
	case ENETUNREACH:
		return RULESET_NO_ROUTE;
	case EHOSTUNREACH:
	case EACCES:
	case EPERM:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return RULESET_UNREACHABLE;
	default: /* no answer, no room: the program's own time-out */
		return 0;
	}
}

/* How the onward connection went. */
static void decide(struct pending *p, int err)
{
	verdict(relay_of(p->onward.engine), p->packet, mark_of(err));
	if (err) {
		give_up(p);
		return;
	}
	p->connected = true;
	/* Not watched until it has been accepted inside. */
	end_watch(&p->onward, 0);
}

static void onward_ready(struct end *e, uint32_t events)
{
	(void)events;
	decide(e->owner, end_error(e));
}

static bool is_own(const struct relay *r, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;

	for (unsigned int i = 0; a->ss_family == AF_INET && i < r->locals4; i++)
		if (r->local4[i].s_addr == in->sin_addr.s_addr)
			return true;
	for (unsigned int i = 0; a->ss_family == AF_INET6 && i < r->locals6; i++)
		if (!memcmp(&r->local6[i], &in6->sin6_addr, 16))
			return true;
	return false;
}

/* A socket that is connected, or about to be (-EINPROGRESS); else -errno. */
static long connect_onward(struct pending *p, uint32_t interface)
{
	struct relay *r = relay_of(p->onward.engine);
	const struct guests *g = &r->guests;
	struct outward_target t;
	bool guests = guests_interface(g);
	int protocol = 0;
	long ret;

	if (outward_map(r, &p->dst, &t)) {
		p->resolver = t.resolver;
	} else if (!guests) {
		return -ETIMEDOUT;
	} else if (interface == guests_interface(g) && !is_own(r, &p->dst)) {
		t.inside = true;
		t.to = p->dst;
		if (g->mptcp)
			protocol = IPPROTO_MPTCP;
	} else {
		t.inside = true;
		p->to_guest = true;
		if (!guests_server(g, &p->dst, &t.to))
			return -ECONNREFUSED;
	}
	p->onward.inside = t.inside;
	ret = end_socket(&p->onward, t.to.ss_family, SOCK_STREAM, protocol);
	if (ret < 0)
		return ret;
	ret = end_bind_to(&p->onward, t.ifname);
	if (ret)
		return ret;
	/* To itself, by an address of the stack, it would not believe its own address. */
	if (p->to_guest && interface != guests_interface(g)) {
		end_transparent(&p->onward, t.to.ss_family);
		end_option(&p->onward, SOL_SOCKET, SO_REUSEADDR, 1);
		ret = end_call(&p->onward, bind, &p->client, address_length(&p->client), 0, 0, 0);
		if (ret < 0)
			return ret;
	}
	return end_call(&p->onward, connect, &t.to, address_length(&t.to), 0, 0, 0);
}

/* From now on the connection is a stream (stream.c). */
static void join(struct pending *p, const struct end *accepted)
{
	struct end onward = p->onward;

	p->onward.fd = -1;
	if (p->to_guest)
		stream_join(&onward, accepted, false);
	else
		stream_join(accepted, &onward, false);
	give_up(p);
}

static void join_resolver(struct pending *p)
{
	struct end questions = p->questions;

	end_watch(&questions, 0);
	p->questions.fd = -1;
	join(p, &questions);
}

/* Its time is over. */
static void expire(struct pending *p)
{
	if (p->questions.fd >= 0) {
		join_resolver(p);
		return;
	}
	if (!p->connected)
		verdict(relay_of(p->onward.engine), p->packet, 0);
	give_up(p);
}

/* Whether there is room for a request; if not, the one that has been there for longest gives its
 * place up, unless all have come just now. */
static bool has_room(struct relay *r)
{
	struct pending *oldest;

	if (r->pending.n >= MOST) {
		oldest = list_of(r->pendings.prev, struct pending, place);
		if (r->engine.now - oldest->since < SOON_MS)
			return false;
		expire(oldest);
	}
	return r->engine.n_streams < r->engine.most_streams;
}

static void question_ready(struct end *e, uint32_t events);

static void request(struct relay *r, uint32_t packet, uint32_t interface,
		    const struct sockaddr_storage *client, const struct sockaddr_storage *dst)
{
	struct pending *p = find(r, client, dst);
	long ret;

	if (p) { /* repeated meanwhile */
		verdict(r, packet, p->connected ? RULESET_GO : 0);
		return;
	}
	if (has_room(r))
		p = calloc(1, sizeof(*p));
	if (!p) {
		verdict(r, packet, 0);
		return;
	}
	end_init(&p->onward, &r->engine, false, -1, p, onward_ready);
	end_init(&p->questions, &r->engine, true, -1, p, question_ready);
	p->client = *client;
	p->dst = *dst;
	p->packet = packet;
	p->since = r->engine.now;
	pending_key(&p->entry.key, client, dst);
	table_add(&r->pending, &p->entry);
	list_add_first(&r->pendings, &p->place);
	ret = connect_onward(p, interface);
	if (ret == -EINPROGRESS) {
		ret = end_watch(&p->onward, EPOLLOUT);
		if (!ret)
			return;
	}
	decide(p, (int)ret);
}

bool outward_addresses(const uint8_t *b, size_t n, struct sockaddr_storage *client,
		       struct sockaddr_storage *dst)
{
	struct sockaddr_in *c4 = (void *)client, *d4 = (void *)dst;
	struct sockaddr_in6 *c6 = (void *)client, *d6 = (void *)dst;
	size_t ports;

	memset(client, 0, sizeof(*client));
	memset(dst, 0, sizeof(*dst));
	if (n >= 20 && b[0] >> 4 == 4 && (b[0] & 15) >= 5 && b[9] == IPPROTO_TCP) {
		client->ss_family = dst->ss_family = AF_INET;
		memcpy(&c4->sin_addr, b + 12, 4);
		memcpy(&d4->sin_addr, b + 16, 4);
		ports = (b[0] & 15) * 4u;
	} else if (n >= 40 && b[0] >> 4 == 6 && b[6] == IPPROTO_TCP) {
		client->ss_family = dst->ss_family = AF_INET6;
		memcpy(&c6->sin6_addr, b + 8, 16);
		memcpy(&d6->sin6_addr, b + 24, 16);
		ports = 40;
	} else {
		return false;
	}
	if (n < ports + 4)
		return false;
	memcpy(&c4->sin_port, b + ports, 2);
	memcpy(&d4->sin_port, b + ports + 2, 2);
	return true;
}

static void queued(struct relay *r, const struct nlmsghdr *h)
{
	size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
	const char *base = (const char *)h;
	struct sockaddr_storage client, dst;
	struct nfqnl_msg_packet_hdr header;
	const uint8_t *payload = NULL;
	uint32_t interface = 0;
	bool known = false;
	size_t n = 0;
	struct nlattr a;

	for (; at + NLA_HDRLEN <= h->nlmsg_len; at += NLA_ALIGN(a.nla_len)) {
		memcpy(&a, base + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || at + a.nla_len > h->nlmsg_len)
			break;
		if (a.nla_type == NFQA_PACKET_HDR && a.nla_len >= NLA_HDRLEN + sizeof(header)) {
			memcpy(&header, base + at + NLA_HDRLEN, sizeof(header));
			known = true;
		} else if (a.nla_type == NFQA_IFINDEX_INDEV &&
			   a.nla_len == NLA_HDRLEN + sizeof(interface)) {
			memcpy(&interface, base + at + NLA_HDRLEN, sizeof(interface));
		} else if (a.nla_type == NFQA_PAYLOAD) {
			payload = (const uint8_t *)base + at + NLA_HDRLEN;
			n = a.nla_len - NLA_HDRLEN;
		}
	}
	if (!known)
		return;
	if (outward_addresses(payload, n, &client, &dst))
		request(r, ntohl(header.packet_id), ntohl(interface), &client, &dst);
	else
		verdict(r, ntohl(header.packet_id), 0);
}

static void queue_ready(struct end *e, uint32_t events)
{
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *h;
	long n;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		n = end_call(e, recvfrom, buf, sizeof(buf), MSG_DONTWAIT, 0, 0);
		if (n <= 0)
			return;
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			if (h->nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
				queued(relay_of(e->engine), h);
	}
}

static int open_queue(struct relay *r)
{
	struct nfqnl_msg_config_cmd bind = { .command = NFQNL_CFG_CMD_BIND };
	struct nfqnl_msg_config_params params = {
		.copy_range = htonl(HEADERS),
		.copy_mode = NFQNL_COPY_PACKET,
	};
	struct guise_nl m;
	long ret;

	end_init(&r->queue, &r->engine, true, -1, NULL, queue_ready);
	ret = end_socket(&r->queue, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	if (ret < 0)
		return (int)ret;
	/* Room for all that may wait; else they are dropped, and repeated after a second. */
	end_option(&r->queue, SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES);
	queue_message(&m, NFQNL_MSG_CONFIG);
	guise_nl_put(&m, NFQA_CFG_CMD, &bind, sizeof(bind));
	guise_nl_put(&m, NFQA_CFG_PARAMS, &params, sizeof(params));
	guise_nl_u32(&m, NFQA_CFG_QUEUE_MAXLEN, htonl(2 * MOST));
	ret = tell_queue(r, &m);
	return ret < 0 ? (int)ret : end_watch(&r->queue, EPOLLIN);
}

/* ---- what comes out of it ------------------------------------------------------- */

/*
 * To a name server: as long as each question that comes is one that is answered here, it
 * is; the first other one, or a piece of one, makes the connection a stream as any other.
 */
static void question_ready(struct end *e, uint32_t events)
{
	uint8_t query[2 + NAMES_ANSWER], answer[2 + NAMES_ANSWER];
	struct pending *p = e->owner;
	long n = end_call(e, recvfrom, query, sizeof(query), MSG_PEEK | MSG_DONTWAIT, 0, 0);
	size_t length, length_of_answer;

	(void)events;
	if (n == -EAGAIN)
		return;
	length = n < 2 ? 0 : (size_t)query[0] << 8 | query[1];
	if (!length || length > (size_t)n - 2) {
		join_resolver(p);
		return;
	}
	length_of_answer = outward_answer(e->engine, &p->dst, query + 2, length, answer + 2);
	if (!length_of_answer) {
		join_resolver(p);
		return;
	}
	answer[0] = (uint8_t)(length_of_answer >> 8);
	answer[1] = (uint8_t)length_of_answer;
	end_call(e, recvfrom, query, length + 2, MSG_DONTWAIT, 0, 0);
	n = end_call(e, sendto, answer, length_of_answer + 2, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	if (n != (long)length_of_answer + 2) /* whoever asks and never listens */
		give_up(p);
}

static void hear_questions(struct pending *p, int fd)
{
	p->questions.fd = fd;
	if (end_watch(&p->questions, EPOLLIN))
		join_resolver(p);
	else
		p->since = p->onward.engine->now;
}

static void listener_ready(struct end *e, uint32_t events)
{
	struct relay *r = relay_of(e->engine);
	struct sockaddr_storage client, dst;
	struct pending *p;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		socklen_t len = sizeof(client), dst_len = sizeof(dst);
		struct end accepted;
		long fd;

		memset(&client, 0, sizeof(client));
		memset(&dst, 0, sizeof(dst));
		fd = end_call(e, accept4, &client, &len, SOCK_NONBLOCK | SOCK_CLOEXEC, 0, 0);
		if (fd == -ECONNABORTED || fd == -EINTR)
			continue;
		if (fd < 0) {
			engine_rest(e, fd);
			return;
		}
		end_init(&accepted, e->engine, true, (int)fd, NULL, NULL);
		end_call(&accepted, getsockname, &dst, &dst_len, 0, 0, 0);
		p = find(r, &client, &dst);
		if (!p || !p->connected || p->questions.fd >= 0)
			end_reset(&accepted);
		else if (p->resolver && r->names.n)
			hear_questions(p, (int)fd);
		else
			join(p, &accepted);
	}
}

/* A transparent socket of the family on some port of the loopback, where the wire does
 * not reach it; its port. */
static int open_listener(struct end *e, int k, int type, uint16_t *port)
{
	struct sockaddr_storage a = { .ss_family = (sa_family_t)(k ? AF_INET6 : AF_INET) };
	struct sockaddr_in6 *in6 = (void *)&a;
	socklen_t len = sizeof(a);
	long ret = end_socket(e, a.ss_family, type, 0);

	if (ret < 0)
		return (int)ret;
	if (k)
		in6->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret = end_transparent(e, a.ss_family);
	if (!ret && type == SOCK_DGRAM)
		ret = k ? end_option(e, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1)
			: end_option(e, IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	if (!ret)
		ret = end_call(e, bind, &a, address_length(&a), 0, 0, 0);
	if (!ret && type == SOCK_STREAM)
		ret = end_call(e, listen, 4096, 0, 0, 0, 0);
	if (!ret)
		ret = end_call(e, getsockname, &a, &len, 0, 0, 0);
	*port = in6->sin6_port; /* where IPv4 has it, too */
	return ret ? (int)ret : end_watch(e, EPOLLIN);
}

int outward_begin(struct relay *r)
{
	int err = open_queue(r);

	for (int k = 0; k < 2 && !err; k++) {
		end_init(&r->listener[k], &r->engine, true, -1, NULL, listener_ready);
		end_init(&r->datagrams[k], &r->engine, true, -1, NULL, datagram_outward);
		err = open_listener(&r->listener[k], k, SOCK_STREAM, &r->stream_port[k]);
		if (!err)
			err = open_listener(&r->datagrams[k], k, SOCK_DGRAM, &r->datagram_port[k]);
	}
	return err ? guise_fail(-err, "the sockets of the relays: %s", strerror(-err)) : 0;
}

void outward_sweep(struct relay *r)
{
	for (struct list *next, *at = r->pendings.next; at != &r->pendings; at = next) {
		struct pending *p = list_of(at, struct pending, place);

		next = at->next;
		if (p->connected && r->engine.now - p->since > PATIENCE_MS)
			expire(p);
	}
}

void outward_end(struct relay *r)
{
	while (!list_empty(&r->pendings))
		give_up(list_of(r->pendings.next, struct pending, place));
	table_end(&r->pending);
}
