// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pair link's ring: frames of every size arrive whole, once and in order
 * between two threads that really sleep on their bells. Whatever a hostile other
 * end writes into the shared memory, the ring only loses frames.
 */
#include "link/ring.h"

#include "link/frame.h"
#include "test/tap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FRAMES   60000
#define PATIENCE 20000 /* ms without progress: a wake-up was lost */

static struct guise_ring *ring;
static int consumer_bell, producer_bell;
static bool stuck;

/* The size and content of a frame are computed from its number. */
static uint32_t frame_size(uint32_t i)
{
	uint32_t x = i * 2654435761u;

	return 8 + (x >> 8) % (i % 7 ? 1600 : (uint32_t)GUISE_FRAME_MAX - 8);
}

static void fill(uint8_t *buf, uint32_t i, uint32_t size)
{
	memset(buf, (uint8_t)(i * 31 + 7), size);
	memcpy(buf, &i, sizeof(i));
	memcpy(buf + size - sizeof(i), &i, sizeof(i));
}

static void ring_bell(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static bool await_bell(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t count;

	if (poll(&p, 1, PATIENCE) != 1) {
		stuck = true;
		return false;
	}
	return read(fd, &count, sizeof(count)) == sizeof(count);
}

static void *produce(void *unused)
{
	uint8_t *buf = malloc(GUISE_FRAME_MAX);

	for (uint32_t i = 0; buf && i < FRAMES; i++) {
		uint32_t size = frame_size(i), cut = size / 3;
		struct guise_iov iov[2] = { { buf, cut }, { buf + cut, size - cut } };

		fill(buf, i, size);
		while (guise_ring_put(ring, iov, 2) == -EAGAIN) {
			if (!await_bell(producer_bell))
				goto out;
			guise_ring_resume(ring);
		}
		if (guise_ring_must_wake(ring))
			ring_bell(consumer_bell);
	}
out:
	free(buf);
	return unused;
}

static void two_threads(void)
{
	uint8_t *buf = malloc(GUISE_FRAME_MAX), *expect = malloc(GUISE_FRAME_MAX);
	uint32_t next = 0, wrong = 0;
	pthread_t thread;

	consumer_bell = eventfd(0, EFD_CLOEXEC);
	producer_bell = eventfd(0, EFD_CLOEXEC);
	if (!buf || !expect || pthread_create(&thread, NULL, produce, NULL))
		abort();
	while (next < FRAMES && !wrong && !stuck) {
		struct guise_iov iov[3] = { { buf, 12 },
					    { buf + 12, 4000 },
					    { buf + 4012, GUISE_FRAME_MAX - 4012 } };
		int64_t size = guise_ring_get(ring, iov, 3);

		if (size == -EAGAIN) {
			if (ring->bell == GUISE_BELL_RUNG) {
				if (!await_bell(consumer_bell))
					break;
				ring->bell = GUISE_BELL_AWAKE;
			}
			if (!guise_ring_sleep(ring) && ring->bell == GUISE_BELL_ASLEEP) {
				struct pollfd p = { .fd = consumer_bell, .events = POLLIN };

				stuck = poll(&p, 1, PATIENCE) != 1;
			}
			continue;
		}
		fill(expect, next, frame_size(next));
		wrong += size != frame_size(next) || memcmp(buf, expect, (size_t)size) != 0;
		next++;
		if (guise_ring_freed(ring))
			ring_bell(producer_bell);
	}
	pthread_join(thread, NULL);
	tap(next == FRAMES && !wrong, "%d frames arrive whole, once and in order (%u came)", FRAMES,
	    next);
	tap(!stuck, "no wake-up is lost");
	tap(ring->head == ring->tail, "the ring is empty at the end");
	close(consumer_bell);
	close(producer_bell);
	free(buf);
	free(expect);
}

static void full_and_empty(void)
{
	static uint8_t buf[GUISE_FRAME_MAX + 1];
	struct guise_iov iov = { buf, 60000 };
	int puts = 0;
	int64_t got;

	memset(ring, 0, sizeof(*ring));
	tap(guise_ring_get(ring, &iov, 1) == -EAGAIN, "an empty ring has no frame");
	while (guise_ring_put(ring, &iov, 1) == 60000)
		puts++;
	tap(puts == GUISE_RING_BYTES / 60008, "a ring takes frames until it is full (%d)", puts);
	tap(ring->full == GUISE_FULL_WAITS, "a producer without room says that it waits");
	guise_ring_get(ring, &iov, 1);
	tap(!guise_ring_freed(ring), "one frame out of a full ring wakes no producer");
	while ((got = guise_ring_get(ring, &iov, 1)) == 60000 && !guise_ring_freed(ring))
		;
	tap(got == 60000 && ring->full == GUISE_FULL_FREED, "half a ring of room does");
	tap(guise_ring_resume(ring) && !guise_ring_resume(ring), "the producer is told once");

	iov.len = GUISE_FRAME_MAX + 1;
	tap(guise_ring_put(ring, &iov, 1) == -EMSGSIZE, "a frame beyond the largest is refused");
	iov.len = 0;
	tap(guise_ring_put(ring, &iov, 1) == -EMSGSIZE, "an empty frame is refused");
	memset(ring, 0, sizeof(*ring));
	iov.len = 100;
	guise_ring_put(ring, &iov, 1);
	iov.len = 99;
	tap(guise_ring_get(ring, &iov, 1) == -EMSGSIZE && ring->tail == ring->head,
	    "a frame that is longer than the buffers is lost, not cut");
}

static void nonsense(void)
{
	static const uint64_t lengths[] = { 0, GUISE_FRAME_MAX + 1, ~0ULL, ~7ULL, 1ULL << 63, 200 };
	static uint8_t buf[GUISE_FRAME_MAX];
	struct guise_iov iov = { buf, sizeof(buf) };
	bool good = true;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(ring, 0, sizeof(*ring));
		ring->head = 112;
		memcpy(ring->data, &lengths[i], 8);
		good = good && guise_ring_get(ring, &iov, 1) == -EBADMSG &&
		       guise_ring_get(ring, &iov, 1) == -EAGAIN;
	}
	tap(good, "a length that cannot be empties the ring");
	memset(ring, 0, sizeof(*ring));
	ring->head = ~0ULL - 100;
	tap(guise_ring_get(ring, &iov, 1) == -EBADMSG, "so does a head beyond the ring");
	ring->head = ring->tail + 4;
	tap(guise_ring_get(ring, &iov, 1) == -EBADMSG, "and half a length");
	ring->head = 0;
	ring->tail = 1ULL << 40;
	iov.len = 100;
	tap(guise_ring_put(ring, &iov, 1) == -EAGAIN, "a tail beyond the head leaves no room");
}

int main(void)
{
	ring = aligned_alloc(64, sizeof(*ring));
	if (!ring)
		return 1;
	memset(ring, 0, sizeof(*ring));
	two_threads();
	full_and_empty();
	nonsense();
	free(ring);
	return tap_end();
}
