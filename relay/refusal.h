/* SPDX-License-Identifier: GPL-2.0-only */
/* "Nobody listens there", said to a program of the stack that sent a datagram. */
#ifndef GUISE_RELAY_REFUSAL_H
#define GUISE_RELAY_REFUSAL_H

#include "relay/engine.h"

int refusal_begin(struct engine *g);
/* client sent payload bytes to dst: tell it, as from dst. */
void refusal_send(struct engine *g, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload);

#endif
