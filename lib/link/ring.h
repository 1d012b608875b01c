/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One direction of a pair link: a ring of frames in shared memory, with one
 * producer and one consumer, each of which is serialised by the lock of its
 * own stack's virtual CPU. They may be in different processes, and neither
 * trusts what the other writes beyond losing frames.
 *
 * A record is its length (8 bytes) and the frame, padded to 8. Positions count
 * bytes and never wrap; the place in data is the position modulo its size.
 *
 * Two handshakes avoid system calls while both sides are busy:
 *
 * bell: whether the consumer must be woken (by a descriptor that it polls)
 *	AWAKE	it will look again by itself
 *	ASLEEP	it found nothing and may sleep: ring
 *	RUNG	the descriptor has been rung, or is about to be
 *	The consumer sets ASLEEP and then looks once more for a frame, before it
 *	sleeps. The producer stores a frame before it reads bell. So at least one
 *	of the two sees what the other has stored.
 *
 * full: whether the producer waits for room
 *	NO	it does not
 *	WAITS	it found no room and has stopped
 *	FREED	there is room again, and its bell was rung for that
 */
#ifndef GUISE_LINK_RING_H
#define GUISE_LINK_RING_H

#include "guise/layout.h"

#include <stdbool.h>

#define GUISE_RING_BYTES (1u << 20)

enum { GUISE_BELL_AWAKE, GUISE_BELL_ASLEEP, GUISE_BELL_RUNG };
enum { GUISE_FULL_NO, GUISE_FULL_WAITS, GUISE_FULL_FREED };

struct guise_ring {
	uint64_t head __attribute__((aligned(64))); /* written by the producer */
	uint64_t tail __attribute__((aligned(64))); /* written by the consumer */
	uint32_t bell __attribute__((aligned(64)));
	uint32_t full;
	uint8_t data[GUISE_RING_BYTES] __attribute__((aligned(64)));
};

/* Puts a frame and returns its bytes. -EAGAIN: no room (full is WAITS now); -EMSGSIZE: too long. */
int64_t guise_ring_put(struct guise_ring *r, const struct guise_iov *iov, uint32_t n);

/*
 * Writes the next frame to iov and returns its bytes. -EAGAIN: there is none; -EMSGSIZE: it
 * was longer than iov and is lost; -EBADMSG: the producer has written invalid data, and all
 * that was in the ring is lost.
 */
int64_t guise_ring_get(struct guise_ring *r, const struct guise_iov *iov, uint32_t n);

/* Producer, after a put: whether the consumer's bell must be rung. */
bool guise_ring_must_wake(struct guise_ring *r);

/* Consumer, about to sleep: true when a frame came meanwhile. */
bool guise_ring_sleep(struct guise_ring *r);

/* Consumer, after gets: whether the producer waits and there is room now; the
 * caller then rings the bell of the ring in the other direction. */
bool guise_ring_freed(struct guise_ring *r);

/* Producer: whether the consumer has reported that there is room again. */
bool guise_ring_resume(struct guise_ring *r);

#endif
