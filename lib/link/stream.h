/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of the stream backend (stream.c) for another backend whose frames go over
 * such a stream, and that knows more about the program at the other end: passt.c.
 *
 * The memory that its members share begins with a struct guise_stream_shared; it gives the
 * size of that memory to open and attach. Each process has a struct guise_stream, in
 * port->state.
 */
#ifndef GUISE_LINK_STREAM_H
#define GUISE_LINK_STREAM_H

#include "link/counted.h"
#include "link/framing.h"
#include "link/link.h"

/* Begins as zeroes. The virtual CPU is its lock. */
struct guise_stream_shared {
	struct guise_framing in, out;
	struct guise_counted receive, send;
	uint64_t written, before; /* bytes that the socket has taken in all, and before `send` */
};

struct guise_stream {
	struct guise_stream_shared *shared;
	size_t bytes; /* of the memory that begins there */
	struct guise_region *region;
	struct guise_link *link;
	uint32_t bit;
	/* NULL, or: receives in place of guise_counted_receive(). */
	long (*receive)(struct guise_stream *e, int fd, const struct iovec *iov);
};

int guise_stream_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		      const char *spec, size_t bytes);
int guise_stream_attach(struct guise_stack *s, struct guise_link *link,
			struct guise_link_port *port, size_t bytes);
int64_t guise_stream_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n);
int64_t guise_stream_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n);
int64_t guise_stream_flush(struct guise_link_port *port);
void guise_stream_detach(struct guise_link_port *port);
/* The sentence for `epitaph`, in which the other end is called `peer`. */
void guise_stream_lost(const struct guise_link *link, const char *peer, char *text, size_t size);

#endif
