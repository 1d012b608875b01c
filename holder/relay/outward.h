/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections from the stack to relayed addresses. */
#ifndef GUISE_HOLDER_OUTWARD_H
#define GUISE_HOLDER_OUTWARD_H

#include "holder/relay/relay.h"

/* Sets up the queue, the listeners and the rules; 0 or -errno with a sentence. */
int outward_begin(struct relay *r);
/* Gives up what has waited for too long. */
void outward_sweep(struct relay *r);
void outward_end(struct relay *r);

/* The host's address for one of the stack; false if it is not relayed. */
bool outward_map(const struct relay *r, const struct sockaddr_storage *dst,
		 struct sockaddr_storage *to);

/* Addresses and ports of a TCP packet of n bytes; false if it is none. */
bool outward_addresses(const uint8_t *packet, size_t n, struct sockaddr_storage *client,
		       struct sockaddr_storage *dst);

#endif
