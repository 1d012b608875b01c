/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine of connections: moves bytes between ends (end.h) of a stack and of the host,
 * and knows nothing of its users. engine.c has the theory.
 */
#ifndef GUISE_RELAY_ENGINE_H
#define GUISE_RELAY_ENGINE_H

#include "relay/end.h"
#include "relay/list.h"
#include "relay/table.h"

#define ENGINE_CHUNK  (128u << 10)
#define ENGINE_ANSWER 512 /* bytes, that the longest answer of ops->answer fits into */

struct engine_route {
	struct sockaddr_storage to;
	bool inside; /* reached over the stack, not by the host */
};

/* What the engine asks of its user, about datagrams. */
struct engine_ops {
	/* Where what is sent to this address of the stack goes on to; false: it is dropped. */
	bool (*route)(struct engine *g, const struct sockaddr_storage *dst,
		      struct engine_route *route);
	/* What is sent to dst may be a question that the user answers by itself: the answer's
	 * length, or 0. NULL: it never is. */
	size_t (*answer)(struct engine *g, const struct sockaddr_storage *dst, const void *query,
			 size_t length, uint8_t answer[ENGINE_ANSWER]);
	/* The address of the program that gets what comes to this socket of the host now, and
	 * the one to reach it from; false: there is none. */
	bool (*server)(struct end *port, struct sockaddr_storage *own,
		       struct sockaddr_storage *server);
};

/* What may still be mentioned in events that were fetched: freed after them. The first
 * member of what malloc() gave. */
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
	uint64_t rested;     /* since when one rests */

	/* stream.c */
	struct list streams;
	unsigned int n_streams;
	unsigned int busy; /* of them, from which the far end is owed something; read by others */

	/* datagram.c */
	struct table flow; /* by both addresses, and the port of the host if it came from there */
	struct list flows; /* the one used last comes first */

	/* refusal.c; index 0: IPv4, 1: IPv6 */
	struct end icmp[2];

	char scratch[ENGINE_CHUNK];
};

/* 0 or -errno with a sentence. */
int engine_begin(struct engine *g, struct guise_stack *s);
/* Ends all streams and conversations. */
void engine_end(struct engine *g);

/* Does what is due; ms until the next, -1: nothing is to come. */
int engine_timers(struct engine *g);
/* Waits for so many ms at most, or with -1 for as long as it takes, and does what has
 * become ready; false: the stack is gone. */
bool engine_turn(struct engine *g, int wait);

/* err is what a listener's accept() has returned. If there is no descriptor or no memory, the
 * listener is left alone for a while, and connections wait in its queue. */
void engine_rest(struct end *listener, long err);
void engine_bury(struct engine *g, struct grave *dead);

#endif
