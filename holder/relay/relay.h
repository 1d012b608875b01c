/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder's relays between the stack and the host; relay.c has the theory. */
#ifndef GUISE_HOLDER_RELAY_H
#define GUISE_HOLDER_RELAY_H

#include "relay/engine.h"
#include "holder/guests/guests.h"
#include "holder/relay/names.h"
#include "holder/relay/resolvers.h"

#include <netinet/in.h>
#include <pthread.h>

#define RELAY_MAPS         16
#define RELAY_PUBLICATIONS 256
#define RELAY_STREAMS      8192
#define RELAY_FLOWS        1024
#define RELAY_LOCALS       64

/* An address inside the stack that stands for another one. */
struct relay_map {
	struct sockaddr_storage from, to; /* port 0: every port, and the same one */
	bool inside;                      /* to is reached over the stack, not by the host */
	bool resolver;                    /* whose questions names.c may answer */
	int number;                       /* of the host's name server (resolvers.c); -1: to */
};

struct publication;

struct relay {
	struct engine engine; /* of the connections */
	struct end stop_end;
	bool started, stop, unpublished; /* the last two set by others, under no lock */
	pthread_t thread;

	/* What the plan says; not changed while the thread runs. */
	struct relay_map map[RELAY_MAPS];
	unsigned int maps;
	int numbered; /* of them, resolvers that are the host's */
	struct names names;
	struct publication *publication[RELAY_PUBLICATIONS];
	unsigned int publications;
	struct in_addr local4[RELAY_LOCALS]; /* addresses of the stack, to reach its servers */
	struct in6_addr local6[RELAY_LOCALS];
	unsigned int locals4, locals6;
	struct guests guests;

	/* All addresses of the stack that stand for the host's: not for the wire (ruleset.c). */
	struct sockaddr_storage hosts[RELAY_MAPS + 2];
	unsigned int n_hosts;

	struct resolvers resolvers;

	/* outward.c; index 0: IPv4, 1: IPv6 */
	struct end queue, listener[2], datagrams[2];
	uint16_t stream_port[2], datagram_port[2]; /* of these, network order */
	struct table pending; /* by client and destination, whose scopes are not known */
	struct list pendings;
	uint64_t swept;

	/* publish.c */
	uint64_t look;       /* when it looks for servers again; 0: at once, ~0: no more */
	unsigned int probes; /* in vain, since the last success */
};

static inline struct relay *relay_of(struct engine *g)
{
	return list_of(g, struct relay, engine);
}

/* Before relay_start(): 0 or -errno with a sentence. */
int relay_add_map(struct relay *r, const char *from, const char *to);
/* server NULL: the host's next one. */
int relay_add_resolver(struct relay *r, const char *from, const char *server);
int relay_add_publication(struct relay *r, int fd, bool udp, unsigned int port);
void relay_add_local(struct relay *r, const char *addr);

/* Whether there is anything to do. */
bool relay_wanted(const struct relay *r);
int relay_start(struct relay *r, struct guise_stack *s);
/* Whether something that came from the stack has not been passed on. */
bool relay_busy(const struct relay *r);
/* No program is left: the published ports are free again, what is connected goes on. */
void relay_unpublish(struct relay *r);
void relay_stop(struct relay *r);

#endif
