/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs sent is delivered after they have ended. */
#ifndef GUISE_HOLDER_DRAIN_H
#define GUISE_HOLDER_DRAIN_H

#include "guise/guise.h"
#include "setup/setup.h"

struct control;
struct relay;

/*
 * Waits until no connection of the stack has bytes or a FIN that its peer has
 * not acknowledged, as far as its path is there, and relay has passed on what came from the
 * stack; for at most GUISE_DRAIN_SECONDS, or until a signal arrives on the descriptor signals.
 * Clients that ask meanwhile are told that the stack is ending.
 */
#define GUISE_DRAIN_SECONDS 60
void drain(struct guise_stack *s, const struct relay *relay, struct control *control, int signals);

#define DRAIN_ADDRESSES 256

/* What packets can leave from. */
struct drain_addresses {
	int n; /* negative: from anywhere */
	struct guise_address address[DRAIN_ADDRESSES];
};

/* Connections in the text of /proc/net/tcp or tcp6 that are not done sending, and are from one of
 * these addresses. */
unsigned int drain_count(const char *text, const struct drain_addresses *there);

#endif
