/* SPDX-License-Identifier: GPL-2.0-only */
/* UDP conversations across the relays, in both directions. */
#ifndef GUISE_RELAY_DATAGRAM_H
#define GUISE_RELAY_DATAGRAM_H

#include "relay/engine.h"

#define DATAGRAM_SILENCE_MS 120000

/*
 * What ends call that are ready: one of the stack, a transparent socket that says where a
 * datagram was sent to (IP_RECVORIGDSTADDR), which gets the first datagrams of conversations;
 * one of the host, which gets all of them, for the program that ops->server names.
 */
void datagram_outward(struct end *e, uint32_t events);
void datagram_inward(struct end *e, uint32_t events);

/* Datagrams come in bursts, and a relay is not the only one that wants a processor:
 * a socket with a long queue. */
void datagram_deepen(struct end *e);

/* Ends those that have been silent for long; ms until it is the next one's turn, -1: there
 * is none. */
int datagram_sweep(struct engine *g);
void datagram_end_all(struct engine *g);

#endif
