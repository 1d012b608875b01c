// SPDX-License-Identifier: GPL-2.0-only
/*
 * Published ports.
 *
 * The command line has bound a socket of the host for each, so the port is taken from
 * the start. But it listens only while a program of the stack serves the port: until
 * then the host's own kernel refuses connections, as it does for any program that has
 * not begun yet. Whether one does is asked of the stack (served.c): each LOOK_MS, more
 * and more rarely up to LOOK_MOST_MS, as long as there is a published port without a
 * server; then no more. When a connection finds that the server has gone, it is reset,
 * and the port is closed again.
 *
 * A server is looked for on the stack's loopback, then on its addresses; where there are
 * guests, in their namespace, on their addresses. It sees the client as 169.254.77.2 or
 * fd67:7569:7365::2, addresses that nobody else has.
 *
 * While it does not listen the socket is without SO_REUSEADDR, so that nobody else
 * may listen on its port.
 */
#include "holder/relay/publish.h"

#include "relay/datagram.h"
#include "holder/guests/guests.h"
#include "holder/relay/served.h"
#include "relay/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS      20
#define LOOK_MOST_MS 200
#define BACKLOG      1024
#define ROUNDS       64

struct publication {
	struct end host;
	uint16_t port; /* of the stack, network order */
	bool udp, listening;
};

static bool offer(struct relay *r, const struct publication *p, int family, const void *addr,
		  struct sockaddr_storage *own, struct sockaddr_storage *server)
{
	struct sockaddr_in *o4 = (void *)own, *s4 = (void *)server;
	struct sockaddr_in6 *o6 = (void *)own, *s6 = (void *)server;

	memset(own, 0, sizeof(*own));
	memset(server, 0, sizeof(*server));
	own->ss_family = server->ss_family = (sa_family_t)family;
	s4->sin_port = p->port;
	if (family == AF_INET) {
		memcpy(&s4->sin_addr, addr, 4);
		inet_pton(AF_INET, RELAY_SOURCE4, &o4->sin_addr);
	} else {
		memcpy(&s6->sin6_addr, addr, 16);
		inet_pton(AF_INET6, RELAY_SOURCE6, &o6->sin6_addr);
	}
	return guests_interface(&r->guests) ? guests_serve(&r->guests, p->udp, server)
					    : served(r->engine.s, p->udp, own, server);
}

bool publication_server(struct end *port, struct sockaddr_storage *own,
			struct sockaddr_storage *server)
{
	const struct publication *p = port->owner;
	struct relay *r = relay_of(port->engine);
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in *in = (const void *)&r->guests.address[0];
	const struct sockaddr_in6 *in6 = (const void *)&r->guests.address[1];

	if (guests_interface(&r->guests))
		return (in->sin_family && offer(r, p, AF_INET, &in->sin_addr, own, server)) ||
		       (in6->sin6_family && offer(r, p, AF_INET6, &in6->sin6_addr, own, server));
	if (offer(r, p, AF_INET, &loopback, own, server) ||
	    offer(r, p, AF_INET6, &in6addr_loopback, own, server))
		return true;
	for (unsigned int i = 0; i < r->locals4; i++)
		if (offer(r, p, AF_INET, &r->local4[i], own, server))
			return true;
	for (unsigned int i = 0; i < r->locals6; i++)
		if (offer(r, p, AF_INET6, &r->local6[i], own, server))
			return true;
	return false;
}

static void unserved(struct publication *p)
{
	struct relay *r = relay_of(p->host.engine);

	end_watch(&p->host, 0);
	end_call(&p->host, shutdown, SHUT_RD, 0, 0, 0, 0);
	end_option(&p->host, SOL_SOCKET, SO_REUSEADDR, 0);
	p->listening = false;
	r->probes = 0;
	r->look = 0;
}

/* Connects a client inside; false if nobody serves any more. */
static bool carry(struct publication *p, int host)
{
	struct sockaddr_storage own, server;
	struct engine *g = p->host.engine;
	struct end inside, outside;
	long ret;

	end_init(&inside, g, true, -1, NULL, NULL);
	end_init(&outside, g, false, host, NULL, NULL);
	if (!publication_server(&p->host, &own, &server)) {
		end_reset(&outside);
		return false;
	}
	ret = end_socket(&inside, server.ss_family, SOCK_STREAM, 0);
	if (ret >= 0) {
		if (server.ss_family == AF_INET6)
			end_option(&inside, IPPROTO_IPV6, IPV6_FREEBIND, 1);
		/* The port is chosen at connect, when the peer is known. */
		end_option(&inside, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		ret = end_call(&inside, bind, &own, address_length(&own), 0, 0, 0);
	}
	if (!ret)
		ret = end_call(&inside, connect, &server, address_length(&server), 0, 0, 0);
	if (ret && ret != -EINPROGRESS) {
		end_close(&inside);
		end_reset(&outside);
		return ret != -ECONNREFUSED;
	}
	stream_join(&inside, &outside, ret == -EINPROGRESS);
	return true;
}

static void listener_ready(struct end *e, uint32_t events)
{
	struct publication *p = e->owner;

	(void)events;
	for (int i = 0; i < ROUNDS; i++) {
		long fd = end_call(e, accept4, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC, 0, 0);

		if (fd == -ECONNABORTED || fd == -EINTR)
			continue;
		if (fd < 0) {
			engine_rest(e, fd);
			return;
		}
		if (!carry(p, (int)fd)) {
			unserved(p);
			return;
		}
	}
}

struct publication *publication_new(struct relay *r, int fd, bool udp, unsigned int port)
{
	struct publication *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	end_init(&p->host, &r->engine, false, fd, p, udp ? datagram_inward : listener_ready);
	p->udp = udp;
	p->port = htons((uint16_t)port);
	return p;
}

int publication_begin(struct publication *p)
{
	long flags = end_call(&p->host, fcntl, F_GETFL, 0, 0, 0, 0);
	socklen_t len = sizeof(struct sockaddr_storage);
	struct sockaddr_storage a;
	long ret = flags;

	if (ret >= 0)
		ret = end_call(&p->host, fcntl, F_SETFL, flags | O_NONBLOCK, 0, 0, 0);
	if (ret >= 0)
		ret = end_call(&p->host, getsockname, &a, &len, 0, 0, 0);
	if (ret < 0 || !p->udp)
		return (int)ret;
	datagram_deepen(&p->host);
	/* To answer from the address that was asked. A socket of IPv6 may be both. */
	end_option(&p->host, IPPROTO_IP, IP_PKTINFO, 1);
	if (a.ss_family == AF_INET6)
		end_option(&p->host, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	return end_watch(&p->host, EPOLLIN);
}

void publication_close(struct publication *p)
{
	end_close(&p->host);
	free(p);
}

int publication_look(struct relay *r)
{
	unsigned int wait = LOOK_MS + r->probes * 2;
	struct sockaddr_storage own, server;
	bool waiting = false;

	if (r->look == UINT64_MAX)
		return -1;
	if (r->engine.now < r->look)
		return (int)(r->look - r->engine.now);
	for (unsigned int i = 0; i < r->publications; i++) {
		struct publication *p = r->publication[i];

		if (p->udp || p->listening)
			continue;
		if (!publication_server(&p->host, &own, &server)) {
			waiting = true;
			continue;
		}
		end_option(&p->host, SOL_SOCKET, SO_REUSEADDR, 1);
		p->listening = !end_call(&p->host, listen, BACKLOG, 0, 0, 0, 0) &&
			       !end_watch(&p->host, EPOLLIN);
		if (!p->listening)
			waiting = true;
	}
	if (wait > LOOK_MOST_MS)
		wait = LOOK_MOST_MS;
	r->probes += r->probes < LOOK_MOST_MS;
	r->look = waiting ? r->engine.now + wait : UINT64_MAX;
	return waiting ? (int)wait : -1;
}
