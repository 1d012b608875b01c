/* SPDX-License-Identifier: GPL-2.0-only */
/* A TCP connection of the stack and one of the host, joined. */
#ifndef GUISE_HOLDER_STREAM_H
#define GUISE_HOLDER_STREAM_H

#include "relay.h"

/*
 * Takes over both descriptors. connecting: the one inside is not connected yet.
 * False when there are too many, or no memory: both have been reset.
 */
bool stream_join(struct relay *r, int inside, int host, bool connecting);
void stream_end_all(struct relay *r);

#endif
