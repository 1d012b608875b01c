/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine of connections: moves bytes between ends (end.h) of a stack and of the host. It
 * does not know its user. engine.c has the theory.
 */
#ifndef GUISE_RELAY_ENGINE_H
#define GUISE_RELAY_ENGINE_H

#include "relay/end.h"
#include "relay/list.h"
#include "relay/table.h"

#include <net/if.h>

#define ENGINE_CHUNK  (128u << 10)
#define ENGINE_ANSWER 512 /* bytes: the longest answer of ops->answer */

struct engine_route {
	struct sockaddr_storage to;
	bool inside;           /* reached over the stack, not over the host */
	char ifname[IFNAMSIZ]; /* ... and over that link of the stack; "": over any */
};

/* What the engine asks its user about datagrams. */
struct engine_ops {
	/* Where a datagram to this address of the stack is passed on to; false: it is dropped. */
	bool (*route)(struct engine *g, const struct sockaddr_storage *dst,
		      struct engine_route *route);
	/* Whether the user itself answers this datagram to dst: the length of the answer, or 0.
	 * This function may be NULL. */
	size_t (*answer)(struct engine *g, const struct sockaddr_storage *dst, const void *query,
			 size_t length, uint8_t answer[ENGINE_ANSWER]);
	/* The address of the program that now gets the datagrams to this socket of the host, and
	 * the address from which to send to it; false: there is none. */
	bool (*server)(struct end *port, struct sockaddr_storage *own,
		       struct sockaddr_storage *server);
};

/* An object that has ended, while events that were fetched may still point to it: it is freed
 * after these. This is the first member of what malloc() gave. */
struct grave {
	struct grave *next;
};

struct engine {
	/* Set before engine_begin(). */
	const struct engine_ops *ops;
	unsigned int most_streams, most_flows;

	struct guise_stack *s;
	int stack_epoll, host_epoll;
	uint64_t now; /* of the host's monotonic clock, in ms */
	struct grave *graves;
	struct list resting; /* listeners */
	uint64_t rested;     /* since when the list has not been empty */

	/* stream.c */
	struct list streams;
	unsigned int n_streams;
	/* Streams whose near end may still send data to the far end. Other threads read this. */
	unsigned int busy;

	/* datagram.c */
	struct table flow; /* conversations, by both addresses; inward by the host's port, too */
	struct list flows; /* the same; the one that was used last comes first */

	/* refusal.c; index 0: IPv4, 1: IPv6 */
	struct end icmp[2];

	char scratch[ENGINE_CHUNK];
};

/* 0, or -errno with a sentence. */
int engine_begin(struct engine *g, struct guise_stack *s);
/* Ends all streams and conversations. */
void engine_end(struct engine *g);

/* Does what is due by the clock. Returns the ms until more is due; -1: nothing is. */
int engine_timers(struct engine *g);
/* Waits for at most so many ms, -1: without a limit, and calls the ends that are ready. False:
 * the stack is lost. */
bool engine_turn(struct engine *g, int wait);

/* err is what accept() of a listener has returned. If descriptors or memory are lacking, the
 * listener rests: it is not watched for a while, and connections wait in its queue. */
void engine_rest(struct end *listener, long err);
/* Frees an object at the end of the turn. */
void engine_bury(struct engine *g, struct grave *dead);

#endif
