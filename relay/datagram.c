// SPDX-License-Identifier: GPL-2.0-only
/*
 * UDP across the relays. A conversation (flow) is identified by the address and port of a
 * client and those that it sends to. It has a connected socket in the stack, and:
 *
 *	outward: a client on the stack
 *		a second connected socket, of the host, or of the stack if the relayed address
 *		is reached over the stack
 *	inward: a client sends to a published port of the host
 *		the socket of that port. It sends the answers to the client, from the address
 *		that the first datagram was sent to
 *
 * A conversation ends when it has been silent for DATAGRAM_SILENCE_MS. If there are most_flows
 * and a new one begins, the one that has been silent for longest ends. If the host reports
 * that no program listens, the program on the stack gets the ICMP message of a host
 * (refusal.c). In the other direction there is no such message, because only the host's
 * kernel could send it: a datagram to a published port that no program on the stack has bound
 * is dropped.
 */
#include "relay/datagram.h"

#include "relay/refusal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define DATAGRAM 65535
#define ROUNDS   64
#define QUEUE    (1 << 20)
#define CONTROL  64 /* bytes: one IP_PKTINFO or IPV6_PKTINFO */

struct flow {
	struct grave grave;
	struct table_entry entry;
	struct list place;       /* in the engine's flows */
	struct end inside, host; /* host: not open if inward; may be a socket of the stack */
	struct end *port;        /* inward: the socket of the published port; else NULL */
	struct sockaddr_storage client, dst;
	char control[CONTROL]; /* inward: sets the source address of answers */
	size_t control_len;
	uint64_t used;
};

static void used(struct flow *f)
{
	struct engine *g = f->inside.engine;

	list_remove(&f->place);
	list_add_first(&g->flows, &f->place);
	f->used = g->now;
}

static void end_flow(struct flow *f)
{
	struct engine *g = f->inside.engine;

	end_close(&f->inside);
	end_close(&f->host);
	list_remove(&f->place);
	table_remove(&g->flow, &f->entry);
	engine_bury(g, &f->grave);
}

/* The conversation that has been silent for longest. There must be one. */
static struct flow *oldest(struct engine *g)
{
	return list_of(g->flows.prev, struct flow, place);
}

static struct flow *find(struct engine *g, const struct end *port,
			 const struct sockaddr_storage *client, const struct sockaddr_storage *dst)
{
	struct table_entry *entry;
	struct table_key key;

	table_key(&key, port, client, dst);
	entry = table_find(&g->flow, &key);
	return entry ? list_of(entry, struct flow, entry) : NULL;
}

void datagram_deepen(struct end *e)
{
	if (end_option(e, SOL_SOCKET, SO_RCVBUFFORCE, QUEUE))
		end_option(e, SOL_SOCKET, SO_RCVBUF, QUEUE);
}

static void answer(struct end *e, uint32_t events);
static void host_ready(struct end *e, uint32_t events);

static struct flow *new_flow(struct engine *g, struct end *port,
			     const struct sockaddr_storage *client,
			     const struct sockaddr_storage *dst)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (g->flow.n >= g->most_flows)
		end_flow(oldest(g));
	f->port = port;
	f->client = *client;
	f->dst = *dst;
	f->used = g->now;
	end_init(&f->inside, g, true, -1, f, answer);
	end_init(&f->host, g, false, -1, f, host_ready);
	table_key(&f->entry.key, port, client, dst);
	table_add(&g->flow, &f->entry);
	list_add_first(&g->flows, &f->place);
	return f;
}

/* ---- from the stack ------------------------------------------------------------- */

/* The host has reported that no program listens there. */
static void refused(struct flow *f, size_t payload)
{
	refusal_send(f->inside.engine, &f->client, &f->dst, payload);
	end_flow(f);
}

static bool is_refusal(long err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ENETUNREACH;
}

/* The user's own answer to the datagram in scratch; 0: it has none. */
static size_t answer_to(struct engine *g, const struct sockaddr_storage *dst, size_t n,
			uint8_t reply[ENGINE_ANSWER])
{
	return g->ops->answer ? g->ops->answer(g, dst, g->scratch, n, reply) : 0;
}

/* Datagrams from the stack: to the host, or inward to the client of a published port. */
static void answer(struct end *e, uint32_t events)
{
	struct flow *f = e->owner;
	char *buf = e->engine->scratch;
	uint8_t reply[ENGINE_ANSWER];
	size_t length;
	long n, sent;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		n = end_call(e, recvfrom, buf, DATAGRAM, MSG_DONTWAIT, 0, 0);
		if (n == -EAGAIN)
			return;
		if (n < 0) {
			end_flow(f);
			return;
		}
		used(f);
		length = f->port ? 0 : answer_to(e->engine, &f->dst, (size_t)n, reply);
		if (length) {
			end_call(e, sendto, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
			continue;
		}
		if (f->port) {
			struct iovec iov = { buf, (size_t)n };
			struct msghdr m = {
				.msg_name = &f->client,
				.msg_namelen = address_length(&f->client),
				.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = f->control_len ? f->control : NULL,
				.msg_controllen = f->control_len,
			};

			end_call(f->port, sendmsg, &m, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0);
			continue;
		}
		sent = end_call(&f->host, sendto, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
		if (is_refusal(sent)) {
			refused(f, (size_t)n);
			return;
		}
	}
}

static void host_ready(struct end *e, uint32_t events)
{
	struct flow *f = e->owner;
	char *buf = e->engine->scratch;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		long n = end_call(e, recvfrom, buf, DATAGRAM, MSG_DONTWAIT, 0, 0);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			if (is_refusal(n))
				refused(f, 0);
			else
				end_flow(f);
			return;
		}
		used(f);
		end_call(&f->inside, sendto, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	}
}

/* The flow's socket in the stack: bound to own, connected to peer. */
static int open_inside(struct flow *f, const struct sockaddr_storage *own,
		       const struct sockaddr_storage *peer)
{
	struct end *e = &f->inside;
	long ret = end_socket(e, own->ss_family, SOCK_DGRAM, 0);

	if (ret < 0)
		return (int)ret;
	end_transparent(e, own->ss_family);
	/*
	 * Outward conversations with one destination are bound to the same address and port.
	 * Inward the stack chooses the port. It must be one that no other conversation has:
	 * otherwise one of them would get the answers to both.
	 */
	if (((const struct sockaddr_in *)own)->sin_port)
		end_option(e, SOL_SOCKET, SO_REUSEADDR, 1);
	datagram_deepen(e);
	ret = end_call(e, bind, own, address_length(own), 0, 0, 0);
	if (!ret)
		ret = end_call(e, connect, peer, address_length(peer), 0, 0, 0);
	return ret ? (int)ret : end_watch(e, EPOLLIN);
}

static struct flow *begin_outward(struct engine *g, const struct sockaddr_storage *client,
				  const struct sockaddr_storage *dst, size_t payload)
{
	struct engine_route t = { 0 };
	struct flow *f;
	long ret;

	if (!g->ops->route(g, dst, &t))
		return NULL;
	f = new_flow(g, NULL, client, dst);
	if (!f)
		return NULL;
	f->host.inside = t.inside;
	ret = end_socket(&f->host, t.to.ss_family, SOCK_DGRAM, 0);
	datagram_deepen(&f->host);
	if (ret >= 0)
		ret = end_bind_to(&f->host, t.ifname);
	if (ret >= 0)
		ret = end_call(&f->host, connect, &t.to, address_length(&t.to), 0, 0, 0);
	if (is_refusal(ret)) {
		refused(f, payload);
		return NULL;
	}
	if (!ret)
		ret = end_watch(&f->host, EPOLLIN);
	if (!ret)
		ret = open_inside(f, dst, client);
	if (!ret)
		return f;
	end_flow(f);
	return NULL;
}

/* Sends one answer from the address dst, without a conversation. */
static void answer_at_once(struct engine *g, const struct sockaddr_storage *client,
			   const struct sockaddr_storage *dst, const void *reply, size_t length)
{
	struct end e;

	end_init(&e, g, true, -1, NULL, NULL);
	if (end_socket(&e, dst->ss_family, SOCK_DGRAM, 0) < 0)
		return;
	end_transparent(&e, dst->ss_family);
	end_option(&e, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!end_call(&e, bind, dst, address_length(dst), 0, 0, 0))
		end_call(&e, sendto, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL, client,
			 address_length(client));
	end_close(&e);
}

/* The address that a datagram was sent to; false if the kernel did not report it. */
static bool original(struct msghdr *m, struct sockaddr_storage *dst)
{
	struct cmsghdr *c;

	memset(dst, 0, sizeof(*dst));
	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			memcpy(dst, CMSG_DATA(c), sizeof(struct sockaddr_in));
		else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
			memcpy(dst, CMSG_DATA(c), sizeof(struct sockaddr_in6));
	}
	/* These are not part of the address: with them the same one could have two keys. */
	if (dst->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)dst)->sin6_flowinfo = 0;
		((struct sockaddr_in6 *)dst)->sin6_scope_id = 0;
	}
	return dst->ss_family != AF_UNSPEC;
}

/* Receives one datagram, with its sender and control messages. Its length, or -errno. */
static long receive(struct end *e, struct sockaddr_storage *client, struct msghdr *m, char *control,
		    size_t size)
{
	struct iovec iov = { e->engine->scratch, DATAGRAM };
	long n;

	memset(client, 0, sizeof(*client));
	*m = (struct msghdr){
		.msg_name = client,
		.msg_namelen = sizeof(*client),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = size,
	};
	n = end_call(e, recvmsg, m, MSG_DONTWAIT, 0, 0, 0);
	m->msg_iov = NULL;
	return n;
}

void datagram_outward(struct end *e, uint32_t events)
{
	char control[256] __attribute__((aligned(16)));
	struct sockaddr_storage client, dst;
	struct engine *g = e->engine;
	uint8_t reply[ENGINE_ANSWER];
	struct msghdr m;
	struct flow *f;
	size_t length;
	long n, sent;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		n = receive(e, &client, &m, control, sizeof(control));
		if (n < 0)
			return;
		if (!original(&m, &dst))
			continue;
		length = answer_to(g, &dst, (size_t)n, reply);
		if (length) {
			answer_at_once(g, &client, &dst, reply, length);
			continue;
		}
		f = find(g, NULL, &client, &dst);
		if (!f)
			f = begin_outward(g, &client, &dst, (size_t)n);
		if (!f)
			continue;
		used(f);
		sent = end_call(&f->host, sendto, g->scratch, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
		if (is_refusal(sent))
			refused(f, (size_t)n);
	}
}

/* ---- from the host --------------------------------------------------------------- */

static struct flow *begin_inward(struct engine *g, struct end *port,
				 const struct sockaddr_storage *client, const struct msghdr *m)
{
	const struct sockaddr_storage none = { 0 };
	struct sockaddr_storage own, server;
	struct flow *f;

	if (!g->ops->server(port, &own, &server))
		return NULL;
	f = new_flow(g, port, client, &none);
	if (!f)
		return NULL;
	if (m->msg_controllen <= sizeof(f->control)) {
		memcpy(f->control, m->msg_control, m->msg_controllen);
		f->control_len = m->msg_controllen;
	}
	if (!open_inside(f, &own, &server))
		return f;
	end_flow(f);
	return NULL;
}

void datagram_inward(struct end *e, uint32_t events)
{
	char control[CONTROL] __attribute__((aligned(16)));
	const struct sockaddr_storage none = { 0 };
	struct sockaddr_storage client;
	struct engine *g = e->engine;
	struct msghdr m;
	struct flow *f;
	long n, sent;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		n = receive(e, &client, &m, control, sizeof(control));
		if (n == -EAGAIN)
			return;
		if (n < 0) /* an error that an earlier answer caused: its client refused it */
			continue;
		f = find(g, e, &client, &none);
		if (!f)
			f = begin_inward(g, e, &client, &m);
		if (!f)
			continue;
		used(f);
		sent = end_call(&f->inside, sendto, g->scratch, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0,
				0);
		if (sent == -ECONNREFUSED)
			end_flow(f);
	}
}

int datagram_sweep(struct engine *g)
{
	while (!list_empty(&g->flows)) {
		struct flow *f = oldest(g);

		if (g->now - f->used <= DATAGRAM_SILENCE_MS)
			return (int)(f->used + DATAGRAM_SILENCE_MS + 1 - g->now);
		end_flow(f);
	}
	return -1;
}

void datagram_end_all(struct engine *g)
{
	while (!list_empty(&g->flows))
		end_flow(oldest(g));
}
