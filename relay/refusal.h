/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells a program on the stack that no program listens where it has sent a datagram. */
#ifndef GUISE_RELAY_REFUSAL_H
#define GUISE_RELAY_REFUSAL_H

#include "relay/engine.h"

int refusal_begin(struct engine *g);
/* client has sent payload bytes to dst: sends it the refusal, as if dst had sent it. */
void refusal_send(struct engine *g, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload);

#endif
