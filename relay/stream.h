/* SPDX-License-Identifier: GPL-2.0-only */
/* A TCP connection of the stack and another one, of the host or of the stack, joined. */
#ifndef GUISE_RELAY_STREAM_H
#define GUISE_RELAY_STREAM_H

#include "relay/engine.h"

/*
 * Takes over both descriptors: near is the one on which a program of the stack, or a
 * guest, is at the other end. connecting: near is not connected yet.
 * False when there are too many, or no memory: both have been reset.
 */
bool stream_join(const struct end *near, const struct end *far, bool connecting);
void stream_end_all(struct engine *g);

#endif
