// SPDX-License-Identifier: GPL-2.0-only
/*
 * Relays: connections that have one end in the stack and one on the host; or, for
 * programs that are no members (guests.c), both in the stack.
 *
 *	outward.c	from the stack to an address that stands for one of the host's:
 *			its localhost, its resolvers; from guests to anywhere
 *	publish.c	from the host to a port of the stack
 *	engine.c	(in relay/) carries on what these have begun, and UDP
 *
 * One thread does all of it, and never waits for anything but the engine's next event. It
 * waits in the background (region/wait.c): a program's own waits see frames first. Where
 * there are guests it sees them first itself, for they wait elsewhere.
 *
 * Everything is bounded: streams, flows, requests, and for each stream what is kept.
 * The host's sockets are closed with the stack; what a program sent before it ended is
 * carried on until the holder has drained the stack (drain.c asks relay_busy()).
 */
#include "holder/relay/relay.h"

#include "relay/datagram.h"
#include "holder/relay/outward.h"
#include "holder/relay/publish.h"
#include "relay/refusal.h"
#include "holder/relay/ruleset.h"

#include "region/stack.h"
#include "region/wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define SWEEP_MS 5000

/* ---- the plan -------------------------------------------------------------------- */

/* "192.0.2.1", "192.0.2.1:53", "2001:db8::1", "[2001:db8::1]:53", with %zone */
static int parse(const char *text, struct sockaddr_storage *a)
{
	struct sockaddr_in *in = (void *)a;
	struct sockaddr_in6 *in6 = (void *)a;
	char host[80], *end, *zone;
	const char *port = NULL;
	unsigned long n = 0;
	size_t len;

	memset(a, 0, sizeof(*a));
	if (*text == '[') {
		len = strcspn(++text, "]");
		if (text[len] && text[len + 1] == ':')
			port = text + len + 2;
		else if (!text[len] || text[len + 1])
			return guise_fail(EINVAL, "relay: \"[%s\" is no address", text);
	} else if (strchr(text, ':') == strrchr(text, ':')) {
		len = strcspn(text, ":");
		if (text[len])
			port = text + len + 1;
	} else {
		len = strlen(text);
	}
	if (len >= sizeof(host))
		return guise_fail(EINVAL, "relay: \"%s\" is no address", text);
	memcpy(host, text, len);
	host[len] = '\0';
	zone = strchr(host, '%');
	if (zone)
		*zone++ = '\0';
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1)
		a->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1)
		a->ss_family = AF_INET6;
	else
		return guise_fail(EINVAL, "relay: \"%s\" is no address", text);
	if (zone)
		in6->sin6_scope_id = (uint32_t)strtoul(zone, NULL, 10);
	if (port) {
		n = strtoul(port, &end, 10);
		if (!n || n > 65535 || *end)
			return guise_fail(EINVAL, "relay: \"%s\" is no port", port);
	}
	in->sin_port = htons((uint16_t)n);
	return 0;
}

int relay_add_map(struct relay *r, const char *from, const char *to)
{
	struct relay_map *m = &r->map[r->maps];
	int err;

	if (r->maps == RELAY_MAPS)
		return guise_fail(ENOSPC, "relay: more than %d addresses", RELAY_MAPS);
	*m = (struct relay_map){ .number = -1 };
	err = parse(from, &m->from);
	if (!err)
		err = parse(to, &m->to);
	r->maps += !err;
	return err;
}

static void give_port(struct sockaddr_storage *a)
{
	struct sockaddr_in *in = (void *)a;

	if (!in->sin_port)
		in->sin_port = htons(53);
}

int relay_add_resolver(struct relay *r, const char *from, const char *server)
{
	struct relay_map *m = &r->map[r->maps];
	int err = relay_add_map(r, from, server ? server : "0.0.0.0");

	if (err)
		return err;
	m->resolver = true;
	m->inside = true;
	give_port(&m->from);
	give_port(&m->to);
	if (!server)
		m->number = r->numbered++;
	return 0;
}

int relay_add_publication(struct relay *r, int fd, bool udp, unsigned int port)
{
	if (r->publications == RELAY_PUBLICATIONS)
		return guise_fail(ENOSPC, "publish: more than %d ports", RELAY_PUBLICATIONS);
	r->publication[r->publications] = publication_new(r, fd, udp, port);
	if (!r->publication[r->publications])
		return guise_fail(ENOMEM, "out of memory");
	r->publications++;
	return 0;
}

/* An address that comes again, after it was gone, is known. */
static bool has_local(const struct relay *r, const char *text)
{
	struct in6_addr six;
	struct in_addr four;
	bool is4 = inet_pton(AF_INET, text, &four) == 1;
	bool is6 = inet_pton(AF_INET6, text, &six) == 1, has = false;

	for (unsigned int i = 0; is4 && i < r->locals4; i++)
		has = has || r->local4[i].s_addr == four.s_addr;
	for (unsigned int i = 0; is6 && i < r->locals6; i++)
		has = has || !memcmp(&r->local6[i], &six, sizeof(six));
	return has;
}

void relay_add_local(struct relay *r, const char *addr)
{
	char text[64];
	size_t len = strcspn(addr, "/");

	if (len >= sizeof(text))
		return;
	memcpy(text, addr, len);
	text[len] = '\0';
	if (has_local(r, text))
		return;
	if (r->locals4 < RELAY_LOCALS && inet_pton(AF_INET, text, &r->local4[r->locals4]) == 1)
		r->locals4++;
	else if (r->locals6 < RELAY_LOCALS &&
		 inet_pton(AF_INET6, text, &r->local6[r->locals6]) == 1)
		r->locals6++;
}

bool relay_wanted(const struct relay *r)
{
	return r->maps || r->publications || guests_interface(&r->guests);
}

/* ---- the thread ------------------------------------------------------------------ */

static void unpublish(struct relay *r)
{
	for (unsigned int i = 0; i < r->publications; i++)
		publication_close(r->publication[i]);
	r->publications = 0;
}

static void told(struct end *e, uint32_t events)
{
	struct relay *r = relay_of(e->engine);
	uint64_t count;

	(void)events;
	host_sys(SYS_read, e->fd, &count, sizeof(count));
	if (__atomic_load_n(&r->unpublished, __ATOMIC_ACQUIRE)) {
		datagram_end_all(e->engine);
		unpublish(r);
	}
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* What is done when its time has come; ms until then, -1: never. */
static int timers(struct relay *r)
{
	int wait = engine_timers(&r->engine);

	if (r->engine.now - r->swept >= SWEEP_MS) {
		r->swept = r->engine.now;
		outward_sweep(r);
	}
	if (!list_empty(&r->pendings))
		wait = sooner(wait, SWEEP_MS);
	return sooner(wait, publication_look(r));
}

static void *serve(void *arg)
{
	struct relay *r = arg;

	/* Guests have no waits in the stack but this one. */
	if (!guests_interface(&r->guests))
		guise_wait_in_background();
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE) && engine_turn(&r->engine, timers(r)))
		;
	outward_end(r);
	engine_end(&r->engine);
	unpublish(r);
	return NULL;
}

/* Each connection takes a descriptor of the stack, and one of the host or another one. */
static void raise_limit(struct guise_stack *s)
{
	struct rlimit64 many = { 4 * RELAY_STREAMS, 4 * RELAY_STREAMS };
	struct rlimit limit;

	guise_call(s, GUISE_NR_prlimit64, 0, RLIMIT_NOFILE, (long)&many, 0, 0, 0);
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static const struct engine_ops ops = {
	.route = outward_route,
	.answer = outward_answer,
	.server = publication_server,
};

/* The addresses that stand for the host's. Two of the maps may have the same one. */
static void find_hosts(struct relay *r)
{
	struct sockaddr_storage *a;

	for (unsigned int i = 0; i < r->maps; i++) {
		a = &r->hosts[r->n_hosts++];
		*a = r->map[i].from;
		((struct sockaddr_in *)a)->sin_port = 0;
		for (unsigned int k = 0; k + 1 < r->n_hosts; k++)
			if (!memcmp(a, &r->hosts[k], sizeof(*a))) {
				r->n_hosts--;
				break;
			}
	}
	if (!r->publications)
		return;
	parse(RELAY_SOURCE4, &r->hosts[r->n_hosts++]);
	parse(RELAY_SOURCE6, &r->hosts[r->n_hosts++]);
}

/* The rules come first: from then on these addresses are not for the wire. */
static int lead_here(struct relay *r)
{
	int err;

	find_hosts(r);
	err = ruleset_apply(r);
	for (unsigned int i = 0; i < r->n_hosts && !err; i++)
		err = ruleset_local(r->engine.s, &r->hosts[i]);
	if (!err && guests_interface(&r->guests))
		err = guests_begin(&r->guests, r->engine.s);
	return err;
}

static int begin(struct relay *r, struct guise_stack *s)
{
	int err, fd;

	r->engine.ops = &ops;
	r->engine.most_streams = RELAY_STREAMS;
	r->engine.most_flows = RELAY_FLOWS;
	list_init(&r->pendings);
	table_begin(&r->pending);
	err = engine_begin(&r->engine, s);
	if (err)
		return err;
	fd = (int)host_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return guise_fail(-fd, "no descriptor for the relays: %s", strerror(-fd));
	end_init(&r->stop_end, &r->engine, false, fd, NULL, told);
	err = end_watch(&r->stop_end, EPOLLIN);
	if (!err && (r->maps || guests_interface(&r->guests))) {
		err = refusal_begin(&r->engine);
		if (!err)
			err = outward_begin(r);
	}
	if (!err)
		err = lead_here(r);
	for (unsigned int i = 0; i < r->publications && !err; i++) {
		err = publication_begin(r->publication[i]);
		if (err)
			guise_fail(-err, "a published port: %s", strerror(-err));
	}
	return err;
}

int relay_start(struct relay *r, struct guise_stack *s)
{
	int err;

	raise_limit(s);
	err = begin(r, s);
	if (!err) {
		err = -pthread_create(&r->thread, NULL, serve, r);
		if (err)
			guise_fail(-err, "no thread for the relays: %s", strerror(-err));
	}
	r->started = !err;
	return err;
}

bool relay_busy(const struct relay *r)
{
	return __atomic_load_n(&r->engine.busy, __ATOMIC_ACQUIRE);
}

static void tell(struct relay *r, bool *what)
{
	uint64_t one = 1;

	__atomic_store_n(what, true, __ATOMIC_RELEASE);
	host_sys(SYS_write, r->stop_end.fd, &one, sizeof(one));
}

void relay_unpublish(struct relay *r)
{
	if (r->started)
		tell(r, &r->unpublished);
}

void relay_stop(struct relay *r)
{
	if (!r->started)
		return;
	tell(r, &r->stop);
	pthread_join(r->thread, NULL);
	r->started = false;
}
