// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pair backend at the end of a cable whose other end is the fuzzer: at
 * times an orderly one, that puts frames into the ring, at times one that
 * writes anything anywhere in the memory that both share.
 */
#include "wire.h"

#include "link/frame.h"
#include "link/pair.h"
#include "link/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* As pair.c lays it out: a magic number, and a ring for each end to write. */
struct cable {
	uint64_t magic;
	struct guise_ring ring[2];
};

static int cable_fd[3]; /* memory, the stack's bell, ours */
static struct guise_ring *to_stack, *from_stack;
static bool nonsense; /* lies in the ring, and takes with it what is there */
static bool mad;      /* we, at present: the ring from the stack makes no sense either */

static const char *pair_missing(void)
{
	return NULL;
}

static int pair_open(struct guise_stack *s)
{
	struct cable *cable;
	char spec[128];
	struct stat st;
	int err = guise_cable_make(cable_fd);

	if (err)
		return err;
	if (fstat(cable_fd[0], &st) || st.st_size != sizeof(*cable))
		return guise_fail(EPROTO, "a cable is not laid out as this fuzzer thinks");
	cable = mmap(NULL, sizeof(*cable), PROT_READ | PROT_WRITE, MAP_SHARED, cable_fd[0], 0);
	if (cable == MAP_FAILED)
		return guise_fail(errno, "the cable cannot be mapped: %s", strerror(errno));
	from_stack = &cable->ring[0];
	to_stack = &cable->ring[1];
	snprintf(spec, sizeof(spec), "pair:fd=%d:%d:%d:0,mac=" FRAME_STACK_MAC, cable_fd[0],
		 cable_fd[1], cable_fd[2]);
	err = guise_link_open(s, "eth0", spec);
	return err < 0 ? err : 0;
}

/* guise_ring_put() refuses what it would not send; the ring itself takes anything. */
static void put_odd_length(uint64_t len)
{
	memcpy(to_stack->data + to_stack->head % GUISE_RING_BYTES, &len, sizeof(len));
	__atomic_store_n(&to_stack->head, to_stack->head + 8 + ((len + 7) & ~7ull),
			 __ATOMIC_RELEASE);
}

static enum feed pair_feed(const struct frame *f)
{
	struct guise_iov iov = { (void *)f->bytes, f->len };
	int64_t put;

	/* Nonsense loses all that is in the ring with it, so it comes alone. */
	if (nonsense && to_stack->head != to_stack->tail)
		return FEED_FULL;
	nonsense = !f->len || f->len > GUISE_FRAME_MAX;
	if (nonsense) {
		if (to_stack->head != to_stack->tail)
			return FEED_FULL;
		put_odd_length(f->len);
		return FED;
	}
	put = guise_ring_put(to_stack, &iov, 1);
	if (put == -EAGAIN)
		return FEED_FULL;
	if (guise_ring_must_wake(to_stack) &&
	    write(cable_fd[1], &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		return FEED_REFUSED;
	return FED;
}

static int64_t pair_take(uint8_t *buf, uint32_t size)
{
	struct guise_iov iov = { buf, size };
	int64_t got = guise_ring_get(from_stack, &iov, 1);

	/* The rest of a long frame is nobody's concern here. */
	if (got == -EMSGSIZE)
		got = size;
	if (got == -EBADMSG && mad)
		got = -EAGAIN;
	if (guise_ring_freed(from_stack) &&
	    __atomic_exchange_n(&to_stack->bell, GUISE_BELL_RUNG, __ATOMIC_SEQ_CST) !=
		    GUISE_BELL_RUNG &&
	    write(cable_fd[1], &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		return -errno;
	return got;
}

static uint64_t odd_position(struct rng *r, const struct guise_ring *ring)
{
	static const uint64_t odd[] = { 0,
					1,
					4,
					7,
					8,
					9,
					GUISE_RING_BYTES - 8,
					GUISE_RING_BYTES,
					GUISE_RING_BYTES + 8,
					1ull << 31,
					1ull << 32,
					1ull << 63,
					~0ull,
					~0ull - 7 };

	switch (rng_below(r, 4)) {
	case 0:
		return rng_next(r);
	case 1:
		return rng_pick(r, odd);
	case 2:
		return ring->tail + rng_pick(r, odd);
	default:
		return ring->tail + 8ull * rng_below(r, GUISE_RING_BYTES / 8 + 2);
	}
}

static void pair_sabotage(struct rng *r)
{
	uint32_t count = 1 + rng_below(r, 6);

	mad = true;
	while (count--) {
		struct guise_ring *ring = rng_one_in(r, 4) ? from_stack : to_stack;
		uint64_t length = rng_one_in(r, 2) ? rng_below(r, 2 * GUISE_FRAME_MAX)
						   : rng_next(r);

		switch (rng_below(r, 8)) {
		case 0:
		case 1:
			__atomic_store_n(&ring->head, odd_position(r, ring), __ATOMIC_RELEASE);
			break;
		case 2:
			__atomic_store_n(&ring->tail, odd_position(r, ring), __ATOMIC_RELEASE);
			break;
		case 3:
			ring->bell = rng_below(r, 5) ? rng_below(r, 4) : (uint32_t)rng_next(r);
			break;
		case 4:
			ring->full = rng_below(r, 5) ? rng_below(r, 4) : (uint32_t)rng_next(r);
			break;
		case 5: /* rung without a word */
			if (write(cable_fd[1], &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
				return;
			break;
		default: /* the length of the frame that comes next */
			memcpy(ring->data + ring->tail % (GUISE_RING_BYTES - 8), &length,
			       sizeof(length));
		}
	}
}

static void pair_repair(void)
{
	mad = false;
	to_stack->head = to_stack->tail;
	to_stack->full = GUISE_FULL_NO;
	from_stack->tail = from_stack->head;
	/* The stack may have stopped sending when it saw no room. */
	from_stack->full = GUISE_FULL_FREED;
}

const struct wire wire_pair = {
	.name = "pair",
	.what = "the pair backend, at the end of a cable",
	.exact = true,
	.missing = pair_missing,
	.open = pair_open,
	.feed = pair_feed,
	.take = pair_take,
	.sabotage = pair_sabotage,
	.repair = pair_repair,
};
