/* SPDX-License-Identifier: GPL-2.0-only */
/* UDP conversations across the relays, in both directions. */
#ifndef GUISE_HOLDER_DATAGRAM_H
#define GUISE_HOLDER_DATAGRAM_H

#include "holder/relay/relay.h"

/* Where the stack's side of published ports comes from: 169.254.77.2 and its like. */
#define RELAY_SOURCE4 "169.254.77.2"
#define RELAY_SOURCE6 "fd67:7569:7365::2"

/* The first datagrams of conversations: from the stack, from the host. */
void datagram_outward(struct end *e, uint32_t events);
void datagram_inward(struct end *e, uint32_t events);

/* Datagrams come in bursts, and a relay is not the only one that wants a processor:
 * a socket with a long queue. */
void datagram_deepen(struct end *e);

/* Ends those that have been silent for long. */
void datagram_sweep(struct relay *r);
void datagram_end_all(struct relay *r);

#endif
