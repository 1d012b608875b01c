// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the pair link's ring (lib/link/ring.c), which two processes
 * share that do not trust each other.
 *
 *	ring_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn puts frames into a ring, lets the other end write anything anywhere,
 * and takes frames out into buffers of all shapes. Ring and buffers are heap
 * memory of their exact size, so that the address sanitizer sees every byte
 * that is touched beyond them. What went in undisturbed must come out the same,
 * and a ring that nobody writes to any more must become empty. In every eighth
 * turn the other end is a thread that does not stop writing meanwhile.
 */
#include "pieces.h"
#include "turns.h"

#include "link/frame.h"
#include "link/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RACE_CALLS 500
/* Each get of a frame, or of what cannot be one, moves on by at least a length and a word. */
#define GETS_MOST   (GUISE_RING_BYTES / 16 + 2)
#define FRAMES_MOST 64

static struct guise_ring *ring;
static uint64_t n_frames, n_nonsense;

static uint64_t random_size(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return rng_below(r, GUISE_FRAME_MAX + 2);
	case 1:
		return GUISE_FRAME_MAX + 1 - rng_below(r, 4);
	default:
		return rng_below(r, 2000);
	}
}

/* A frame's bytes follow from its number. */
static uint8_t content(uint32_t number, uint64_t at)
{
	return (uint8_t)(number * 37 + at * 11 + (at >> 8));
}

static int64_t put(struct rng *r, uint32_t number)
{
	uint64_t at = 0, size = random_size(r);
	struct pieces p;
	int64_t ret;

	pieces_make(&p, r, 0, size);
	for (uint32_t i = 0; i < p.n; i++)
		for (uint64_t k = 0; k < p.iov[i].len; k++)
			((uint8_t *)p.iov[i].base)[k] = content(number, at++);
	ret = guise_ring_put(ring, p.iov, p.n);
	if (ret != (int64_t)size && ret != -EAGAIN && ret != -EMSGSIZE)
		turns_fail("a put gives what it must not", ret);
	if (ret != -EAGAIN && (ret == -EMSGSIZE) != (!size || size > GUISE_FRAME_MAX))
		turns_fail("a frame was taken or refused that must not be", (int64_t)size);
	guise_ring_must_wake(ring);
	pieces_free(&p);
	return ret;
}

/*
 * number: of the frame that is due, when the ring is undisturbed; SOME when it
 * may be anything, RACE when the other end writes meanwhile.
 */
enum { SOME = -1, RACE = -2 };

static int64_t get(struct rng *r, int64_t number)
{
	uint64_t room = number < 0 && rng_one_in(r, 2) ? random_size(r) : 2 * GUISE_FRAME_MAX,
		 at = 0;
	uint64_t had = ring->head - ring->tail;
	struct pieces p;
	int64_t ret;

	pieces_make(&p, r, 0, room);
	ret = guise_ring_get(ring, p.iov, p.n);
	if (ret > (int64_t)room || ret > (int64_t)GUISE_FRAME_MAX || !ret ||
	    (ret < 0 && ret != -EAGAIN && ret != -EMSGSIZE && ret != -EBADMSG))
		turns_fail("a get gives what it must not", ret);
	if (number != RACE && ret > 0 && (had > GUISE_RING_BYTES || (uint64_t)ret + 8 > had))
		turns_fail("a frame came out that nobody put in", ret);
	if (number >= 0 && ret < 0)
		turns_fail("a frame does not come out", ret);
	for (uint32_t i = 0; number >= 0 && i < p.n; i++)
		for (uint64_t k = 0; k < p.iov[i].len && at < (uint64_t)ret; k++, at++)
			if (((uint8_t *)p.iov[i].base)[k] != content((uint32_t)number, at))
				turns_fail("a frame came out damaged", number);
	n_frames += ret > 0;
	n_nonsense += ret == -EBADMSG;
	guise_ring_freed(ring);
	if (ret == -EAGAIN)
		guise_ring_sleep(ring);
	pieces_free(&p);
	return ret;
}

static uint64_t odd_number(struct rng *r)
{
	static const uint64_t odd[] = { 0,
					1,
					4,
					7,
					8,
					9,
					15,
					16,
					GUISE_FRAME_MAX,
					GUISE_FRAME_MAX + 1,
					GUISE_RING_BYTES - 8,
					GUISE_RING_BYTES,
					GUISE_RING_BYTES + 8,
					1ull << 32,
					1ull << 63,
					~0ull,
					~0ull - 7 };

	return rng_one_in(r, 3) ? rng_next(r) : rng_pick(r, odd);
}

static void scribble(struct rng *r)
{
	uint64_t number = odd_number(r), at;

	switch (rng_below(r, 6)) {
	case 0:
		__atomic_store_n(&ring->head, rng_one_in(r, 2) ? number : ring->tail + number,
				 __ATOMIC_RELAXED);
		break;
	case 1:
		__atomic_store_n(&ring->tail, rng_one_in(r, 2) ? number : ring->head - number,
				 __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n(&ring->bell, (uint32_t)number, __ATOMIC_RELAXED);
		break;
	case 3:
		__atomic_store_n(&ring->full, (uint32_t)number, __ATOMIC_RELAXED);
		break;
	default: /* the next length, wherever it lies */
		at = ring->tail % GUISE_RING_BYTES;
		for (uint64_t i = 0; i < sizeof(number); i++)
			ring->data[(at + i) % GUISE_RING_BYTES] = (uint8_t)(number >> (8 * i));
	}
}

static void turn_in_order(struct rng *r)
{
	int64_t in[FRAMES_MOST];
	uint32_t n = 0, i, count = 1 + rng_below(r, FRAMES_MOST);

	for (i = 0; i < count; i++) {
		int64_t size = put(r, n);

		if (size == -EAGAIN)
			break;
		if (size > 0)
			in[n++] = size;
	}
	for (i = 0; i < n; i++)
		if (get(r, i) != in[i])
			turns_fail("a frame came out with another length", in[i]);
}

static void empty(struct rng *r)
{
	uint32_t gets = 0;

	while (get(r, SOME) != -EAGAIN)
		if (++gets > GETS_MOST)
			turns_fail("a ring that is left alone does not become empty", gets);
}

static void turn_with_sabotage(struct rng *r)
{
	uint32_t count = 1 + rng_below(r, 12);

	while (count--) {
		if (rng_one_in(r, 2))
			put(r, 0);
		scribble(r);
		if (rng_one_in(r, 2))
			get(r, SOME);
	}
	empty(r);
}

struct vandal {
	struct rng rng;
	bool stop;
};

static void *vandalise(void *arg)
{
	struct vandal *v = arg;

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED))
		scribble(&v->rng);
	return NULL;
}

static void turn_with_vandal(struct rng *r)
{
	struct vandal v = { .rng = { rng_next(r) } };
	pthread_t thread;

	errno = pthread_create(&thread, NULL, vandalise, &v);
	turns_need(!errno, "no thread");
	for (int i = 0; i < RACE_CALLS; i++) {
		put(r, 0);
		get(r, RACE);
	}
	__atomic_store_n(&v.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	empty(r);
}

static void begin(void)
{
	ring = aligned_alloc(64, sizeof(*ring));
	turns_need(ring, "no memory");
	memset(ring, 0, sizeof(*ring));
}

static void turn(struct rng *r, uint64_t number)
{
	if (number % 8 == 7)
		turn_with_vandal(r);
	else if (rng_one_in(r, 2))
		turn_with_sabotage(r);
	else
		turn_in_order(r);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "ring",
		.where = "the ring",
		.begin = begin,
		.turn = turn,
		.sums = { { "frames", &n_frames }, { "nonsense", &n_nonsense } },
	};

	return turns_main(&fuzzer, argc, argv);
}
