// SPDX-License-Identifier: GPL-2.0-only
/*
 * UDP across the relays. A conversation is a client's address and port and the ones
 * it sends to; it has a connected socket in the stack, and:
 *
 *	outward, from the stack	a connected socket of the host, too, or a second one of
 *				the stack, where the relayed address is reached over that
 *	inward, to a published port	the port's own socket on the host, which answers
 *				to where the first datagram came from, and from the
 *				address that it was sent to
 *
 * A conversation ends when it has been silent for SILENCE_MS, or when it is the one
 * silent for longest and there are RELAY_FLOWS already. When the host says that nobody
 * listens, the program in the stack is told as a host tells it, by ICMP (refusal.c).
 * The other way round nobody can be told, for only the host's kernel may: a datagram
 * to a published port that no program has bound is dropped.
 */
#include "relay/datagram.h"

#include "holder/relay/outward.h"
#include "holder/relay/publish.h"
#include "relay/refusal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SILENCE_MS 120000
#define DATAGRAM   65535
#define ROUNDS     64
#define QUEUE      (1 << 20)
#define CONTROL    64 /* bytes: one IP_PKTINFO or IPV6_PKTINFO */

struct flow {
	struct grave grave;
	struct flow *next, **place;
	struct end inside, host;       /* host: closed if inward; may be of the stack */
	struct publication *published; /* NULL: outward */
	struct sockaddr_storage client, dst;
	char control[CONTROL]; /* inward: how to answer */
	size_t control_len;
	uint64_t used;
};

static void unlink_flow(struct flow *f)
{
	*f->place = f->next;
	if (f->next)
		f->next->place = f->place;
}

static void to_front(struct relay *r, struct flow *f)
{
	f->used = r->now;
	f->next = r->flows;
	f->place = &r->flows;
	if (f->next)
		f->next->place = &f->next;
	r->flows = f;
}

static void used(struct flow *f)
{
	struct relay *r = f->inside.relay;

	if (r->flows != f) {
		unlink_flow(f);
		to_front(r, f);
	}
	f->used = r->now;
}

static void end_flow(struct flow *f)
{
	struct relay *r = f->inside.relay;

	end_close(&f->inside);
	end_close(&f->host);
	unlink_flow(f);
	r->n_flows--;
	relay_bury(r, &f->grave);
}

static struct flow *find(struct relay *r, const struct publication *published,
			 const struct sockaddr_storage *client, const struct sockaddr_storage *dst)
{
	struct flow *f = r->flows;

	while (f && (f->published != published || memcmp(&f->client, client, sizeof(*client)) ||
		     memcmp(&f->dst, dst, sizeof(*dst))))
		f = f->next;
	return f;
}

void datagram_deepen(struct end *e)
{
	if (end_option(e, SOL_SOCKET, SO_RCVBUFFORCE, QUEUE))
		end_option(e, SOL_SOCKET, SO_RCVBUF, QUEUE);
}

static void answer(struct end *e, uint32_t events);
static void host_ready(struct end *e, uint32_t events);

static struct flow *new_flow(struct relay *r, struct publication *published,
			     const struct sockaddr_storage *client,
			     const struct sockaddr_storage *dst)
{
	struct flow *oldest = r->flows, *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (r->n_flows == RELAY_FLOWS) {
		while (oldest->next)
			oldest = oldest->next;
		end_flow(oldest);
	}
	f->published = published;
	f->client = *client;
	f->dst = *dst;
	end_init(&f->inside, r, true, -1, f, answer);
	end_init(&f->host, r, false, -1, f, host_ready);
	to_front(r, f);
	r->n_flows++;
	return f;
}

/* ---- from the stack ------------------------------------------------------------- */

/* The host says that nobody listens there. */
static void refused(struct flow *f, size_t payload)
{
	refusal_send(f->inside.relay, &f->client, &f->dst, payload);
	end_flow(f);
}

static bool is_refusal(long err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ENETUNREACH;
}

/* From the stack to the host, or to whoever asked on a published port. */
static void answer(struct end *e, uint32_t events)
{
	struct flow *f = e->owner;
	char *buf = e->relay->scratch;
	uint8_t reply[NAMES_ANSWER];
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
		length = f->published ? 0
				      : outward_answer(e->relay, &f->dst, buf, (size_t)n, reply);
		if (length) {
			end_call(e, sendto, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
			continue;
		}
		if (f->published) {
			struct iovec iov = { buf, (size_t)n };
			struct msghdr m = {
				.msg_name = &f->client,
				.msg_namelen = address_length(&f->client),
				.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = f->control_len ? f->control : NULL,
				.msg_controllen = f->control_len,
			};

			end_call(publication_end(f->published), sendmsg, &m,
				 MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0);
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
	char *buf = e->relay->scratch;

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
	end_option(e, SOL_SOCKET, SO_REUSEADDR, 1);
	datagram_deepen(e);
	ret = end_call(e, bind, own, address_length(own), 0, 0, 0);
	if (!ret)
		ret = end_call(e, connect, peer, address_length(peer), 0, 0, 0);
	return ret ? (int)ret : end_watch(e, EPOLLIN);
}

static struct flow *begin_outward(struct relay *r, const struct sockaddr_storage *client,
				  const struct sockaddr_storage *dst, size_t payload)
{
	struct outward_target t;
	struct flow *f;
	long ret;

	if (!outward_map(r, dst, &t))
		return NULL;
	f = new_flow(r, NULL, client, dst);
	if (!f)
		return NULL;
	f->host.inside = t.inside;
	ret = end_socket(&f->host, t.to.ss_family, SOCK_DGRAM, 0);
	datagram_deepen(&f->host);
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

/* Answers in the name of dst, without a conversation. */
static void answer_at_once(struct relay *r, const struct sockaddr_storage *client,
			   const struct sockaddr_storage *dst, const void *reply, size_t length)
{
	struct end e;

	end_init(&e, r, true, -1, NULL, NULL);
	if (end_socket(&e, dst->ss_family, SOCK_DGRAM, 0) < 0)
		return;
	end_transparent(&e, dst->ss_family);
	end_option(&e, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!end_call(&e, bind, dst, address_length(dst), 0, 0, 0))
		end_call(&e, sendto, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL, client,
			 address_length(client));
	end_close(&e);
}

/* Where a datagram was sent to; false if the kernel did not say. */
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
	/* What is no part of the address must not make two of one. */
	if (dst->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)dst)->sin6_flowinfo = 0;
		((struct sockaddr_in6 *)dst)->sin6_scope_id = 0;
	}
	return dst->ss_family != AF_UNSPEC;
}

/* One datagram with its sender and what the kernel says of it; its length or -errno. */
static long receive(struct end *e, struct sockaddr_storage *client, struct msghdr *m, char *control,
		    size_t size)
{
	struct iovec iov = { e->relay->scratch, DATAGRAM };
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
	struct relay *r = e->relay;
	uint8_t reply[NAMES_ANSWER];
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
		length = outward_answer(r, &dst, r->scratch, (size_t)n, reply);
		if (length) {
			answer_at_once(r, &client, &dst, reply, length);
			continue;
		}
		f = find(r, NULL, &client, &dst);
		if (!f)
			f = begin_outward(r, &client, &dst, (size_t)n);
		if (!f)
			continue;
		used(f);
		sent = end_call(&f->host, sendto, r->scratch, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
		if (is_refusal(sent))
			refused(f, (size_t)n);
	}
}

/* ---- from the host --------------------------------------------------------------- */

static struct flow *begin_inward(struct relay *r, struct publication *p,
				 const struct sockaddr_storage *client, const struct msghdr *m)
{
	const struct sockaddr_storage none = { 0 };
	struct sockaddr_storage own, server;
	struct flow *f;

	if (!publication_server(r, p, &own, &server))
		return NULL;
	f = new_flow(r, p, client, &none);
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
	struct publication *p = e->owner;
	struct sockaddr_storage client;
	struct relay *r = e->relay;
	struct msghdr m;
	struct flow *f;
	long n, sent;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		n = receive(e, &client, &m, control, sizeof(control));
		if (n == -EAGAIN)
			return;
		if (n < 0) /* an answer of ours that its client did not want */
			continue;
		f = find(r, p, &client, &none);
		if (!f)
			f = begin_inward(r, p, &client, &m);
		if (!f)
			continue;
		used(f);
		sent = end_call(&f->inside, sendto, r->scratch, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0,
				0);
		if (sent == -ECONNREFUSED)
			end_flow(f);
	}
}

void datagram_sweep(struct relay *r)
{
	for (struct flow *next, *f = r->flows; f; f = next) {
		next = f->next;
		if (r->now - f->used > SILENCE_MS)
			end_flow(f);
	}
}

void datagram_end_all(struct relay *r)
{
	while (r->flows)
		end_flow(r->flows);
}
