/* SPDX-License-Identifier: GPL-2.0-only */
/* Ports of the stack, published on the host. */
#ifndef GUISE_HOLDER_PUBLISH_H
#define GUISE_HOLDER_PUBLISH_H

#include "holder/relay/relay.h"

/* Where the stack's side of published ports comes from. */
#define RELAY_SOURCE4 "169.254.77.2"
#define RELAY_SOURCE6 "fd67:7569:7365::2"

struct publication;

struct publication *publication_new(struct relay *r, int fd, bool udp, unsigned int port);
int publication_begin(struct publication *p);
void publication_close(struct publication *p);

/* The address of a program that serves the port now, and the one to reach it from; false if
 * there is none. port is a publication's end. */
bool publication_server(struct end *port, struct sockaddr_storage *own,
			struct sockaddr_storage *server);

/* Looks whether programs have begun to serve; ms until the next look, -1: none. */
int publication_look(struct relay *r);

#endif
