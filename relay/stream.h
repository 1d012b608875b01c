/* SPDX-License-Identifier: GPL-2.0-only */
/* Joins a TCP connection of the stack to another one, of the host or of the stack. */
#ifndef GUISE_RELAY_STREAM_H
#define GUISE_RELAY_STREAM_H

#include "relay/engine.h"

/*
 * Takes over both descriptors. The peer of near is a program on the stack, or a guest.
 * connecting: near is not connected yet. False when there are too many streams or there is no
 * memory: both connections have been reset.
 */
bool stream_join(const struct end *near, const struct end *far, bool connecting);
void stream_end_all(struct engine *g);

#endif
