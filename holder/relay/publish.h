/* SPDX-License-Identifier: GPL-2.0-only */
/* Ports of the stack, published on the host. */
#ifndef GUISE_HOLDER_PUBLISH_H
#define GUISE_HOLDER_PUBLISH_H

#include "holder/relay/relay.h"

struct publication;

struct publication *publication_new(struct relay *r, int fd, bool udp, unsigned int port);
int publication_begin(struct publication *p);
void publication_close(struct publication *p);
struct end *publication_end(struct publication *p);

/* The address of a program that serves the port now, and the one to reach it from;
 * false if there is none. */
bool publication_server(struct relay *r, const struct publication *p, struct sockaddr_storage *own,
			struct sockaddr_storage *server);

/* Looks whether programs have begun to serve; ms until the next look, -1: none. */
int publication_look(struct relay *r);

#endif
