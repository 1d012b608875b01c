/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guests: programs that are no members, in a network namespace of the host whose only
 * way out is a link of the stack. guests.c has the theory.
 */
#ifndef GUISE_HOLDER_GUESTS_H
#define GUISE_HOLDER_GUESTS_H

#include "guise/guise.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

struct nft_batch;
struct relay;

struct guests {
	uint32_t ifindex;                   /* of their link in the stack; 0: there are none */
	uint32_t link;                      /* the same, as the host side counts */
	int netns;                          /* their namespace: a descriptor */
	uint64_t inode;                     /* ... and its number */
	int pid;                            /* of one that was in it lately; 0: none is known */
	int alive;                          /* a pipe; its other end hangs up with them; -1: none */
	bool mptcp;                         /* their connections are carried on as Multipath TCP */
	struct sockaddr_storage address[2]; /* theirs, by family; AF_UNSPEC: none */
};

/* The plan's "guests IFNAME fd=N [mptcp] ADDR..."; 0 or -errno with a sentence. */
int guests_parse(struct guests *g, struct guise_stack *s, char **word, int words);

/* Of their link; 0: there are no guests. */
static inline uint32_t guests_interface(const struct guests *g)
{
	return g->ifindex;
}

/* Sets up routes and rules, by which what guests send reaches the relays or the wire. */
int guests_begin(const struct guests *g, struct guise_stack *s);
void guests_rules(const struct guests *g, struct nft_batch *b);

/* The address to which a relay carries a connection from the wire: the guests' own, with the
 * port of dst; false if they have none of that family. */
bool guests_server(const struct guests *g, const struct sockaddr_storage *dst,
		   struct sockaddr_storage *to);

/* Whether a process is in their namespace. */
bool guests_are_there(struct guests *g);
/* Whether one of them would get what is sent to this address of theirs. */
bool guests_serve(struct guests *g, bool udp, const struct sockaddr_storage *server);
/* The same by a table as /proc/net/tcp has it. */
bool guests_listen(FILE *table, bool udp, const struct sockaddr_storage *server);
/* Whether the stack has not yet received all that guests have sent. */
bool guests_have_sent(const struct guests *g, const struct guise_stack *s);

#endif
