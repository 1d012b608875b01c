// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end that answers. Strangers speak to it, so each client has a time in which it must be done,
 * a number of requests and of bytes, and memory that is there from the start; when all places are
 * taken, the client that came first makes room. One thread serves all, and waits for none.
 *
 * A request is one of HTTP/1: GET / is answered with a report of the connection, POST / with the
 * same, filled up with empty lines to the size of what was sent. So curl can ask, too.
 */
#include "serve.h"

#include "clock.h"
#include "head.h"
#include "report.h"
#include "watch.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CLIENTS      256
#define REQUESTS     16
#define BODY_MOST    (1 << 20)
#define TIME         60.0 /* seconds that a client has */
#define IDLE         15.0 /* and between two things that it does */
#define TURN_ACCEPTS 64
#define PIECE        16384
#define USAGE        2
#define FAILED       125

struct client {
	int fd; /* -1: the place is free */
	struct address from;
	double began, last;
	unsigned int requests;
	char in[HEAD_MOST];
	size_t n;
	uint64_t body; /* bytes of it that are still to come */
	bool post, keeps;
	char out[HEAD_MOST + REPORT_MOST];
	size_t out_at, out_n;
	uint64_t fill; /* bytes of empty lines behind it */
	struct report report;
};

struct server {
	int listener, signals;
	bool as_json;
	struct watch watch;
	struct client client[CLIENTS];
};

static void tell(const struct server *s, const struct client *c)
{
	static const char *const names[] = { "TCP", "TCP, fallen back from Multipath TCP",
					     "Multipath TCP" };
	static const char *const words[] = { "tcp", "fallback", "mptcp" };
	static const char *const saw[] = { "unseen", "plain", "capable" };
	const struct report *r = &c->report;
	char from[ADDRESS_TEXT];

	address_text(&c->from, from);
	if (s->as_json) {
		printf("{\"from\": \"%s\", \"protocol\": \"%s\", \"syn\": \"%s\", \"subflows\": %d, "
		       "\"bytes\": %llu}\n",
		       from, words[r->protocol], saw[r->syn.saw], r->n_subflows,
		       (unsigned long long)r->bytes);
	} else {
		printf("%s: %s", from, names[r->protocol]);
		if (r->protocol == MPTCP)
			printf(", paths: %d", r->n_subflows);
		else if (r->syn.saw != UNSEEN)
			printf(", the SYN came with%s the option",
			       r->syn.saw == CAPABLE ? "" : "out");
		putchar('\n');
	}
	fflush(stdout);
}

static void drop(const struct server *s, struct client *c)
{
	if (c->requests)
		tell(s, c);
	close(c->fd);
	c->fd = -1;
}

static struct client *place(struct server *s)
{
	struct client *oldest = &s->client[0];

	for (int i = 0; i < CLIENTS; i++) {
		if (s->client[i].fd < 0)
			return &s->client[i];
		if (s->client[i].began < oldest->began)
			oldest = &s->client[i];
	}
	drop(s, oldest);
	return oldest;
}

static void admit(struct server *s)
{
	for (int i = 0; i < TURN_ACCEPTS; i++) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct client *c;

		if (fd < 0)
			return;
		c = place(s);
		memset(c, 0, sizeof(*c));
		c->fd = fd;
		c->from = address_remote(fd);
		c->began = c->last = now_seconds();
	}
}

static void refuse(struct client *c, const char *status)
{
	c->keeps = false;
	c->fill = 0;
	c->out_at = 0;
	c->out_n = (size_t)snprintf(c->out, sizeof(c->out),
				    "HTTP/1.1 %s\r\nServer: " HEAD_NAME
				    "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
				    status);
}

static void answer(struct server *s, struct client *c, uint64_t size)
{
	struct address local = address_local(c->fd);
	char text[REPORT_MOST];
	struct state state;
	size_t n;

	watch_read(&s->watch);
	state_read(&state, c->fd);
	report_make(&c->report, c->fd, &state, flows_find(&s->watch.flows, &c->from, &local));
	n = report_write(&c->report, text);
	c->fill = size > n ? size - n : 0;
	c->out_at = 0;
	c->out_n = (size_t)snprintf(c->out, sizeof(c->out),
				    "HTTP/1.1 200 OK\r\nServer: " HEAD_NAME
				    "\r\nContent-Type: text/plain\r\nContent-Length: %llu\r\n%s\r\n"
				    "%s",
				    (unsigned long long)(n + c->fill),
				    c->keeps ? "" : "Connection: close\r\n", text);
}

/* A head that is whole, or too long, or none. */
static void take_head(struct server *s, struct client *c)
{
	struct head h;
	int n = head_read(&h, c->in, c->n);

	if (n == HEAD_MORE)
		return;
	c->requests++;
	if (n == HEAD_BAD || !h.request) {
		refuse(c, "400 Bad Request");
	} else if (h.length > BODY_MOST) {
		refuse(c, "413 Content Too Large");
	} else {
		c->n -= (size_t)n;
		memmove(c->in, c->in + n, c->n);
		c->keeps = h.keeps && c->requests < REQUESTS;
		c->post = h.post;
		c->body = h.length;
		if (c->n) { /* what came of the body with it */
			size_t part = c->n < c->body ? c->n : (size_t)c->body;

			c->n -= part;
			memmove(c->in, c->in + part, c->n);
			c->body -= part;
		}
		if (!c->body)
			answer(s, c, h.post ? h.length : 0);
		else
			c->fill = h.length;
	}
}

/* What a client says; true while it may go on. */
static bool hear(struct server *s, struct client *c)
{
	char sink[PIECE];
	ssize_t n;

	if (c->body) {
		n = recv(c->fd, sink, c->body < sizeof(sink) ? c->body : sizeof(sink), 0);
		if (n > 0) {
			c->body -= (uint64_t)n;
			if (!c->body)
				answer(s, c, c->post ? c->fill : 0);
		}
	} else {
		n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
		if (n > 0) {
			c->n += (size_t)n;
			take_head(s, c);
		}
	}
	if (n > 0)
		c->last = now_seconds();
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The rest of an answer; true while the client may go on. */
static bool speak(struct server *s, struct client *c)
{
	static char fill[PIECE];
	size_t rest = c->out_n - c->out_at;
	ssize_t n;

	if (rest) {
		n = send(c->fd, c->out + c->out_at, rest, MSG_NOSIGNAL);
		if (n > 0)
			c->out_at += (size_t)n;
	} else {
		memset(fill, '\n', sizeof(fill));
		n = send(c->fd, fill, c->fill < sizeof(fill) ? c->fill : sizeof(fill),
			 MSG_NOSIGNAL);
		if (n > 0)
			c->fill -= (uint64_t)n;
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->last = now_seconds();
	if (c->out_at == c->out_n && !c->fill) {
		c->out_at = c->out_n = 0;
		if (!c->keeps)
			return false;
		if (c->n)
			take_head(s, c);
	}
	return true;
}

static bool has_to_say(const struct client *c)
{
	return c->out_n > 0;
}

static void turn(struct server *s)
{
	struct pollfd p[3 + CLIENTS] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->listener, .events = POLLIN },
		{ .fd = s->watch.fd, .events = POLLIN },
	};
	double now;

	for (int i = 0; i < CLIENTS; i++) {
		const struct client *c = &s->client[i];

		p[3 + i] =
			(struct pollfd){ .fd = c->fd, .events = has_to_say(c) ? POLLOUT : POLLIN };
	}
	poll(p, 3 + CLIENTS, 1000);
	watch_read(&s->watch);
	now = now_seconds();
	for (int i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];
		bool stays;

		if (c->fd < 0)
			continue;
		stays = now - c->began < TIME && now - c->last < IDLE;
		if (stays && p[3 + i].revents)
			stays = has_to_say(c) ? speak(s, c) : hear(s, c);
		if (!stays)
			drop(s, c);
	}
	if (p[1].revents)
		admit(s);
}

static int complain(const char *what, const char *address, const char *port, int status)
{
	fprintf(stderr, "guise: check-mptcp: %s %s%s%s: %s\n", what, address ? address : "",
		address ? " port " : "port ", port, strerror(errno));
	return status;
}

/* Where the kernel makes no socket of Multipath TCP, plain TCP: the other end is told so. */
static int open_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_MPTCP);

	if (fd >= 0 || errno == EAFNOSUPPORT)
		return fd;
	fprintf(stderr,
		"guise: check-mptcp: this kernel makes no socket of Multipath TCP (%s), so plain "
		"TCP answers; is sysctl net.mptcp.enabled 1?\n",
		strerror(errno));
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
}

static int listen_on(const struct addrinfo *a, bool both)
{
	int on = 1, off = 0, fd = open_socket(a->ai_family), err;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (both)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* A listener of both families, or of IPv4 where there is no IPv6. */
static int open_listener(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST,
				  .ai_family = address ? AF_UNSPEC : AF_INET6,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *a;
	int fd;

	if (getaddrinfo(address, port, &hints, &a)) {
		errno = EINVAL;
		return -1;
	}
	fd = listen_on(a, !address);
	freeaddrinfo(a);
	if (fd < 0 && !address && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		return open_listener("0.0.0.0", port);
	return fd;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int serve(const char *address, const char *port, bool as_json)
{
	static struct server s;
	struct signalfd_siginfo caught;

	s.as_json = as_json;
	for (int i = 0; i < CLIENTS; i++)
		s.client[i].fd = -1;
	s.listener = open_listener(address, port);
	if (s.listener < 0)
		return complain("cannot listen at", address, port, USAGE);
	s.signals = open_signals();
	if (s.signals < 0)
		return complain("no signalfd for", address, port, FAILED);
	watch_open(&s.watch, (uint16_t)strtoul(port, NULL, 10));
	if (s.watch.fd < 0)
		fputs("guise: check-mptcp: packets cannot be seen without CAP_NET_RAW, so what "
		      "arrives on the SYN is not reported\n",
		      stderr);
	fprintf(stderr, "guise: check-mptcp: listening at port %s\n", port);
	while (read(s.signals, &caught, sizeof(caught)) < 0)
		turn(&s);
	for (int i = 0; i < CLIENTS; i++)
		if (s.client[i].fd >= 0)
			drop(&s, &s.client[i]);
	return 0;
}
