/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs sent is delivered after they have ended. */
#ifndef GUISE_HOLDER_DRAIN_H
#define GUISE_HOLDER_DRAIN_H

#include "guise/guise.h"

struct control;
struct relay;

/*
 * Waits until no connection of the stack has bytes or a FIN that its peer has
 * not acknowledged, and relay has passed on what came from the stack; for at
 * most GUISE_DRAIN_SECONDS, or until a signal arrives on the descriptor signals.
 * Clients that ask meanwhile are told that the stack is ending.
 */
#define GUISE_DRAIN_SECONDS 60
void drain(struct guise_stack *s, const struct relay *relay, struct control *control, int signals);

/* Connections in the text of /proc/net/tcp or tcp6 that are not done sending. */
unsigned int drain_count(const char *text);

#endif
