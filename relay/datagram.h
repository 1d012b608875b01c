/* SPDX-License-Identifier: GPL-2.0-only */
/* UDP conversations across the relays, in both directions. */
#ifndef GUISE_RELAY_DATAGRAM_H
#define GUISE_RELAY_DATAGRAM_H

#include "relay/engine.h"

#define DATAGRAM_SILENCE_MS 120000

/*
 * The ready() functions of two kinds of ends. Outward: a transparent socket of the stack with
 * IP_RECVORIGDSTADDR, which gets the first datagrams of conversations. Inward: a socket of the
 * host, which gets all datagrams for the program that ops->server names.
 */
void datagram_outward(struct end *e, uint32_t events);
void datagram_inward(struct end *e, uint32_t events);

/* Gives a socket a long queue: datagrams come in bursts, while the relay may have to wait for a
 * processor. */
void datagram_deepen(struct end *e);

/* Ends the conversations that have been silent for too long. Returns the ms until the next one
 * has been; -1: there is none. */
int datagram_sweep(struct engine *g);
void datagram_end_all(struct engine *g);

#endif
