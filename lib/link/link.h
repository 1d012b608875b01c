/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a link backend is. A backend is one file of this folder plus one line
 * in the list of kinds, kinds.h. It moves whole frames between the port's network
 * device and the outside; the frames carry a struct virtio_net_hdr_v1.
 *
 * A backend has up to GUISE_LINK_FDS host descriptors. They are opened once,
 * by the process that adds the link, and reach every member over the join
 * protocol; fd[0] is the one that is polled for input.
 */
#ifndef GUISE_LINK_LINK_H
#define GUISE_LINK_LINK_H

#include "guise/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUISE_LINK_FDS 3

struct guise_stack;
struct guise_link_backend;

/* A link as one process sees it. */
struct guise_link_port {
	const struct guise_link_backend *backend;
	int fd[GUISE_LINK_FDS]; /* -1: none */
	void *state;            /* the backend's own, per process */
	uint32_t generation;    /* of the link whose descriptors these are */
};

struct guise_link_backend {
	/*
	 * How a sender that got -EAGAIN learns that there is room. True: by
	 * POLLOUT on fd[0]. False: the backend itself sets tx_pending, and fd[0],
	 * which may always be writable, is not polled for POLLOUT.
	 */
	bool room_by_pollout;
	/*
	 * Opens what spec names (the text after "kind:", which may be ""), fills
	 * port->fd[], and sets mtu and mac of the link if they are still zero.
	 * link->features already has the features of the kind (RAW) and of the
	 * user's options (NOGRO); this adds those of the backend. 0 or -errno
	 * (with guise_fail()'s sentence).
	 */
	int (*open)(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		    const char *spec);
	/* In a member that has got the descriptors: maps what must be mapped. 0 or -errno. */
	int (*attach)(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port);
	/* The host services frame_out and frame_in: see guise/contract.h. */
	int64_t (*out)(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n);
	int64_t (*in)(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n);
	/*
	 * NULL, or: writes what `out` has gathered. Called before the virtual CPU
	 * is given up, when `out` has set the link's bit in tx_held. 0, -EAGAIN
	 * (again after POLLOUT), or another negative errno.
	 */
	int64_t (*flush)(struct guise_link_port *port);
	/* Unmaps and frees port->state; descriptors are closed by the caller. */
	void (*detach)(struct guise_link_port *port);
	/* NULL, or: ends the program at the other side, with the stack. */
	void (*end)(struct guise_link_port *port);
	/*
	 * NULL, or: a sentence on why the link was lost, once fd[0] has hung up.
	 * The holder says it.
	 */
	void (*epitaph)(const struct guise_link *link, char *text, size_t size);
};

/* A line of kinds.h. */
struct guise_link_kind {
	const char *name, *forms;
	uint32_t features; /* that each such link has */
	uint32_t mtu;
	const struct guise_link_backend *backend;
};

/* The kind of that name, or NULL. */
const struct guise_link_kind *guise_link_kind(const char *name);
/* For messages: the forms of a kind, which must exist, and those of all kinds. */
const char *guise_link_forms(const char *name);
const char *guise_link_kinds(void);

/*
 * Parses "kind[:rest][,mac=..][,mtu=..][,offload=off]", opens the backend,
 * fills region->links[i] and s->port[i], and tells the port (GUISE_NR_LINK_ADD).
 * The interface index inside the stack, or -errno.
 */
int guise_link_open(struct guise_stack *s, const char *name, const char *spec);

/* Whether the link's carrier is there: programs and routes hear of it. 0, or -errno with a
 * sentence. */
int guise_link_carrier(struct guise_stack *s, const char *name, bool on);

/* When the stack ends: ends the programs that serve its links alone. */
void guise_links_end(struct guise_stack *s);

/* Holding the virtual CPU, about to give it up: flushes the links in tx_held. */
void guise_links_flush(struct guise_stack *s);

#endif
