/* SPDX-License-Identifier: GPL-2.0-only */
/* "Nobody listens there", said to a program of the stack that sent a datagram. */
#ifndef GUISE_HOLDER_REFUSAL_H
#define GUISE_HOLDER_REFUSAL_H

#include "holder/relay/relay.h"

int refusal_begin(struct relay *r);
/* client sent payload bytes to dst: tell it, as from dst. */
void refusal_send(struct relay *r, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload);

#endif
