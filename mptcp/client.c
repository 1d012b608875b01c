// SPDX-License-Identifier: GPL-2.0-only
/*
 * One connection, as a program would make it. It asks for the page / by HTTP, so that any web
 * server answers and data goes in both directions; what else listens there says something, too,
 * or nothing. Then it waits until no further path has come for a while. If the other end is guise
 * check-mptcp --serve, it sends a body of some size, so that each path has some of it, and gets as
 * much back, with the other end's report in front.
 *
 * What comes is read up to a bound, and within a time.
 */
#include "client.h"

#include "clock.h"
#include "head.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BODY        65536
#define ANSWER_MOST (BODY + HEAD_MOST + REPORT_MOST)
#define QUIET       1.0  /* seconds after which an answer without a known length is whole */
#define SPEAKS      3.0  /* seconds within which a peer that says something says it */
#define SETTLE_MOST 5    /* times the time to settle */
#define SEND_MOST   60.0 /* seconds beside the patience, for a peer that takes little by little */

struct client {
	const struct question *q;
	struct evidence *e;
	struct watch watch;
	int fd;
	bool over; /* the other end has ended, or the connection has */
	char answer[ANSWER_MOST];
	size_t n;
	struct head head;
};

static bool broke(struct client *c, int error)
{
	c->e->outcome = BROKE;
	c->e->error = error;
	c->over = true;
	return false;
}

/* What there is to know now. Of a connection that is over, the socket forgets its subflows. */
static void look(struct client *c)
{
	struct evidence *e = c->e;
	struct state now;
	const struct flow *flow;

	watch_read(&c->watch);
	state_read(&now, c->fd);
	if (!c->over || now.n_subflows >= e->state.n_subflows)
		e->state = now;
	else if (now.fallback)
		e->state.fallback = true;
	flow = flows_find(&c->watch.flows, &e->local, &e->remote);
	e->seen = flow;
	if (flow)
		e->flow = *flow;
}

static bool wait_for(struct client *c, short events, double seconds)
{
	struct pollfd p = { .fd = c->fd, .events = events };

	return poll(&p, 1, (int)(seconds * 1000) + 1) > 0;
}

/* Whether the other end can be talked to. */
static bool try_address(struct client *c, const struct addrinfo *a)
{
	struct evidence *e = c->e;
	int error = 0;
	socklen_t length = sizeof(error);

	c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_MPTCP);
	if (c->fd < 0) {
		e->outcome = errno == EAFNOSUPPORT ? UNREACHABLE : NO_SOCKET;
		e->error = errno;
		return false;
	}
	e->remote = address_of(a->ai_addr);
	if (connect(c->fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
		error = errno;
	else if (!wait_for(c, POLLOUT, c->q->patience))
		error = ETIMEDOUT;
	else
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	e->local = address_local(c->fd);
	look(c);
	e->error = error;
	if (!error) {
		e->outcome = WENT_WELL;
		e->connected = true;
		return true;
	}
	e->outcome = error == ECONNREFUSED ? REFUSED : error == ETIMEDOUT ? SILENT : UNREACHABLE;
	close(c->fd);
	c->fd = -1;
	return false;
}

static bool connect_to(struct client *c)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int err = getaddrinfo(c->q->host, c->q->port, &hints, &found);
	bool there = false;

	if (err) {
		c->e->outcome = NO_NAME;
		c->e->problem = err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err);
		return false;
	}
	for (const struct addrinfo *a = found; a && !there; a = a->ai_next)
		there = try_address(c, a);
	freeaddrinfo(found);
	return there;
}

static bool send_all(struct client *c, const char *bytes, size_t n)
{
	double end = now_seconds() + c->q->patience, last = end + SEND_MOST;

	while (n) {
		ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);

		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
			c->e->sent += (uint64_t)sent;
			end = now_seconds() + c->q->patience;
		} else if (errno != EAGAIN && errno != EINTR) {
			return broke(c, errno);
		} else if (now_seconds() > end || now_seconds() > last) {
			return broke(c, ETIMEDOUT);
		} else {
			wait_for(c, POLLOUT, 0.1);
			watch_read(&c->watch);
		}
	}
	return true;
}

/* Whether what has come is a whole answer of HTTP. */
static bool whole(struct client *c)
{
	int at = head_read(&c->head, c->answer, c->n);

	if (at > 0 && c->head.answer && c->head.says_length)
		return c->n >= (size_t)at + c->head.length;
	return c->n == sizeof(c->answer);
}

/* Takes in what the other end says: an answer, or whatever it is. */
static bool receive(struct client *c)
{
	double quiet = now_seconds() + SPEAKS, end = now_seconds() + c->q->patience;

	c->n = 0;
	while (!whole(c)) {
		ssize_t n = recv(c->fd, c->answer + c->n, sizeof(c->answer) - c->n, 0);
		double now = now_seconds();

		if (n > 0) {
			c->n += (size_t)n;
			c->e->got += (uint64_t)n;
			quiet = now + (c->e->reported ? c->q->patience : QUIET);
		} else if (!n) {
			c->over = true;
			return true;
		} else if (errno != EAGAIN && errno != EINTR) {
			return broke(c, errno);
		} else if (now > quiet || now > end) {
			/* This program's other end has always something to say. */
			return c->e->reported ? broke(c, ETIMEDOUT) : true;
		} else {
			wait_for(c, POLLIN, 0.1);
			watch_read(&c->watch);
		}
	}
	return true;
}

/* The last that came whole counts. */
static void take_report(struct client *c)
{
	int at = head_read(&c->head, c->answer, c->n);
	struct report now;

	if (at <= 0 || !c->head.ours || !report_read(&now, c->answer + at, c->n - (size_t)at))
		return;
	c->e->reported = true;
	c->e->report = now;
}

static bool ask_for_page(struct client *c)
{
	char request[600];
	int n = snprintf(request, sizeof(request),
			 "GET / HTTP/1.1\r\nHost: %.300s\r\nUser-Agent: " HEAD_NAME
			 "\r\nAccept: */*\r\n\r\n",
			 c->q->shown);

	if (!send_all(c, request, (size_t)n) || !receive(c))
		return false;
	take_report(c);
	return true;
}

static bool exchange_bodies(struct client *c)
{
	static char request[HEAD_MOST + BODY];
	int n = snprintf(request, HEAD_MOST,
			 "POST / HTTP/1.1\r\nHost: %.300s\r\nContent-Length: %d\r\n\r\n",
			 c->q->shown, BODY);

	memset(request + n, '.', BODY);
	if (!send_all(c, request, (size_t)n + BODY) || !receive(c))
		return false;
	take_report(c);
	return true;
}

/* Until no path has come for a while. */
static void settle(struct client *c)
{
	double began = now_seconds(), last = began;
	int n;

	look(c);
	n = c->e->state.n_subflows;
	while (c->e->state.mptcp && !c->e->state.fallback && now_seconds() - last < c->q->settle &&
	       now_seconds() - began < c->q->settle * SETTLE_MOST) {
		poll(NULL, 0, 20);
		look(c);
		if (c->e->state.n_subflows != n) {
			n = c->e->state.n_subflows;
			last = now_seconds();
		}
	}
}

static bool is_subflow(const struct state *s, const struct flow *f)
{
	for (int i = 0; i < s->n_subflows; i++)
		if (address_equal(&s->subflow[i].local, &f->from) &&
		    address_equal(&s->subflow[i].remote, &f->to))
			return true;
	return false;
}

/* What became of further paths. Other connections to that port are not told apart. */
static void take_joins(struct client *c)
{
	struct evidence *e = c->e;

	for (int i = 0; i < FLOWS && e->n_joins < EVIDENCE_JOINS; i++) {
		const struct flow *f = &c->watch.flows.flow[i];

		if (!f->last || f->to.port != e->remote.port ||
		    !(f->syn.join || is_subflow(&e->state, f)))
			continue;
		if (f->in.has & 1 << MP_ADD_ADDR)
			e->told_addresses = true;
		if (!f->syn.join)
			continue;
		e->join[e->n_joins].from = f->from;
		e->join[e->n_joins].to = f->to;
		e->join[e->n_joins++].result = is_subflow(&e->state, f)      ? JOINED
					       : f->answer.without           ? JOIN_PLAIN
					       : f->in.reset || f->out.reset ? JOIN_REFUSED
									     : JOIN_UNANSWERED;
	}
	e->told_addresses |= e->state.told_addresses;
}

void client_ask(const struct question *q, struct evidence *e)
{
	static struct client c;

	memset(e, 0, sizeof(*e));
	c = (struct client){ .q = q, .e = e, .fd = -1 };
	e->host = q->shown;
	e->patience = q->patience;
	counters_read(&e->before);
	watch_open(&c.watch, (uint16_t)strtoul(q->port, NULL, 10));
	if (connect_to(&c)) {
		if (ask_for_page(&c) && !c.over) {
			settle(&c);
			if (e->reported)
				exchange_bodies(&c);
		}
		look(&c);
		take_joins(&c);
	}
	counters_read(&e->after);
	if (c.fd >= 0)
		close(c.fd);
	if (c.watch.fd >= 0)
		close(c.watch.fd);
}
