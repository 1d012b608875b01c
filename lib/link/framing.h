/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames in a byte stream, as passt and QEMU (-netdev stream) write them: a
 * length of four bytes, most significant first, and so many bytes of an
 * Ethernet frame. There is no virtio-net header; the port gets an empty one before
 * each frame.
 *
 * The struct may be in shared memory, with one owner at a time. If an owner is killed in
 * here, the struct is as before the change or as after it, because a change becomes valid
 * by one store of one word (struct guise_framing_place). Received data is not trusted:
 *
 *	length 0 to 13, and 65536 to 1 MiB	no frame: skipped, and counted
 *	longer than that			not this protocol, or a wrong
 *						position in the stream: the
 *						link is lost
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
#define GUISE_FRAMING_WRITE (1u << 15) /* of several frames, written in one call */

/* One word, changed in one store, because the thread that changes it may be killed at any time. */
struct guise_framing_place {
	uint64_t at : 20;       /* the first used byte of data ... */
	uint64_t have : 20;     /* ... and how many bytes are used */
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
 * Notes that a call that moves bytes is under way: to or from this buffer, or, if `out` is
 * empty, from other memory. guise_framing_came(), _gone() or _put() note its end, in the same
 * store as the number of bytes.
 */
void guise_framing_begin(struct guise_framing *f);

/* In: where to write what is read next; never empty after -EAGAIN. */
struct guise_iov guise_framing_room(struct guise_framing *f);
void guise_framing_came(struct guise_framing *f, uint32_t bytes);

/*
 * In: writes the next frame to iov, behind an empty virtio-net header, and returns its bytes
 * with the header. -EAGAIN: it has not come yet; -EBADMSG: something that is no frame, or is
 * longer than iov, was skipped; -EPROTO: the position in the stream is wrong, for ever.
 */
int64_t guise_framing_get(struct guise_framing *f, const struct guise_iov *iov, uint32_t n);

/*
 * Out: appends the frame whose virtio-net header is iov[0], without that header, and without
 * its first `sent` bytes (of length and frame), which were sent already; these can only be
 * there when the buffer is empty. Returns the bytes of the frame with the header. -EAGAIN:
 * no room; -EMSGSIZE: no frame.
 */
int64_t guise_framing_put(struct guise_framing *f, const struct guise_iov *iov, uint32_t n,
			  uint32_t sent);
/*
 * Out: guise_framing_due() returns the bytes to write next, guise_framing_gone() notes how
 * many of them were written. They are several whole frames of no more than
 * GUISE_FRAMING_WRITE bytes, or one frame that is longer.
 *
 * The host's kernel splits what is written in one call into pieces of 36 KiB, and a peer
 * that runs at the same time may read one piece before the next is there. With the rule
 * above a frame is in two pieces at most. Debian 12's passt can handle that. Of a frame in
 * three pieces it may lose the last, and then its position in the stream is wrong for ever.
 */
struct guise_iov guise_framing_due(struct guise_framing *f);
void guise_framing_gone(struct guise_framing *f, uint32_t bytes);

static inline void guise_framing_head(uint8_t head[GUISE_FRAMING_HEAD], uint32_t length)
{
	for (unsigned int i = 0; i < GUISE_FRAMING_HEAD; i++)
		head[i] = (uint8_t)(length >> (24 - 8 * i));
}

/* The frame's length for the stream, or 0 if it cannot be a frame. */
uint32_t guise_framing_length(const struct guise_iov *iov, uint32_t n);

#endif
