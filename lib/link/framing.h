/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames in a byte stream, as passt and QEMU (-netdev stream) write them: a
 * length of four bytes, most significant first, and so many bytes of an
 * Ethernet frame. There is no virtio-net header; towards the port an empty one
 * stands before each frame.
 *
 * The struct may lie in shared memory. One owner at a time, and one that is killed in
 * here leaves it as it was, or as it was to be: all but the bytes that do not count yet
 * is one word. What comes in is the peer's, and hostile until proven otherwise:
 *
 *	length 0 to 13, and 65536 to 1 MiB	no frame: skipped, and counted
 *	longer than that			not this protocol, or out of
 *						step: nothing after it means
 *						anything
 */
#ifndef GUISE_LINK_FRAMING_H
#define GUISE_LINK_FRAMING_H

#include "guise/layout.h"

#include <stdbool.h>

#define GUISE_FRAMING_HEAD  4u
#define GUISE_FRAMING_LEAST 14u
#define GUISE_FRAMING_MOST  65535u
#define GUISE_FRAMING_SKIP  (1u << 20) /* longest that is skipped */
#define GUISE_FRAMING_BYTES (1u << 18) /* each buffer: a few of the longest frames */
#define GUISE_FRAMING_WRITE (1u << 15) /* of several frames, written at once */

/* One word, which changes at once: whoever changes it may be killed at any moment. */
struct guise_framing_place {
	uint64_t at : 20;       /* of what is in data, the first byte ... */
	uint64_t have : 20;     /* ... and how many there are */
	uint64_t skip : 23;     /* in: bytes of a bad frame that are still to come;
			       out: of a frame, of which the rest is written */
	uint64_t under_way : 1; /* a call that moves bytes of the stream: counted.h */
};

struct guise_framing {
	struct guise_framing_place is;
	uint32_t bad; /* in: the length that ended it, or 0 */
	uint8_t data[GUISE_FRAMING_BYTES];
};

/*
 * Bytes are about to be moved, from or to here (or, out, with nothing in here: from
 * elsewhere). That is over with guise_framing_came(), _gone() or _put(), in the store that
 * notes how many it were.
 */
void guise_framing_begin(struct guise_framing *f);

/* In: where to write what is read next; never empty after -EAGAIN. */
struct guise_iov guise_framing_room(struct guise_framing *f);
void guise_framing_came(struct guise_framing *f, uint32_t bytes);

/*
 * In: the next frame, behind an empty virtio-net header, to iov; its bytes with
 * the header. -EAGAIN: not there yet; -EBADMSG: one that is no frame, or is
 * longer than iov, was passed over; -EPROTO: out of step, for good.
 */
int64_t guise_framing_get(struct guise_framing *f, const struct guise_iov *iov, uint32_t n);

/*
 * Out: appends the frame whose virtio-net header is iov[0], which is left
 * out, without its first `sent` bytes (of length and frame), of which there
 * may be some when there is nothing before it. Returns the bytes of the frame
 * with the header; -EAGAIN: no room; -EMSGSIZE: no frame.
 */
int64_t guise_framing_put(struct guise_framing *f, const struct guise_iov *iov, uint32_t n,
			  uint32_t sent);
/*
 * Out: what is to be written next, and that so many bytes of it were. Several
 * frames are whole, and no more than GUISE_FRAMING_WRITE bytes; a longer one is
 * alone.
 *
 * The host's kernel cuts what is written at once into pieces of 36 KiB, and a
 * peer that runs meanwhile may read one before the next is there. So at most one
 * cut goes through any frame. Debian 12's passt copes with that; of a frame in
 * three pieces it may miss the last, and is out of step for good.
 */
struct guise_iov guise_framing_due(struct guise_framing *f);
void guise_framing_gone(struct guise_framing *f, uint32_t bytes);

static inline void guise_framing_head(uint8_t head[GUISE_FRAMING_HEAD], uint32_t length)
{
	for (unsigned int i = 0; i < GUISE_FRAMING_HEAD; i++)
		head[i] = (uint8_t)(length >> (24 - 8 * i));
}

/* The frame's length as it stands in the stream, or 0 if it can be no frame. */
uint32_t guise_framing_length(const struct guise_iov *iov, uint32_t n);

#endif
