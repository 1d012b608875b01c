/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections from the stack to relayed addresses. */
#ifndef GUISE_HOLDER_OUTWARD_H
#define GUISE_HOLDER_OUTWARD_H

#include "holder/relay/relay.h"

/* Opens the queue and the listeners; 0 or -errno with a sentence. */
int outward_begin(struct relay *r);
/* Gives up what has waited for too long. */
void outward_sweep(struct relay *r);
void outward_end(struct relay *r);

/* What a relayed address stands for. */
struct outward_target {
	struct sockaddr_storage to;
	bool inside; /* reached over the stack */
	bool resolver;
	char ifname[IFNAMSIZ]; /* ... and over that link; or "" */
};

/* False if that address of the stack is not relayed. */
bool outward_map(struct relay *r, const struct sockaddr_storage *dst, struct outward_target *t);

/* The same, for datagrams: the engine asks. */
bool outward_route(struct engine *g, const struct sockaddr_storage *dst,
		   struct engine_route *route);

/*
 * What is sent to dst may be a question that the relay answers by itself: the answer's length,
 * or 0. names.h has the rest.
 */
size_t outward_answer(struct engine *g, const struct sockaddr_storage *dst, const void *query,
		      size_t length, uint8_t answer[NAMES_ANSWER]);

/* Addresses and ports of a TCP packet of n bytes; false if it is none. */
bool outward_addresses(const uint8_t *packet, size_t n, struct sockaddr_storage *client,
		       struct sockaddr_storage *dst);

#endif
