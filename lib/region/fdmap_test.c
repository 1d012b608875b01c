// SPDX-License-Identifier: GPL-2.0-only
/* The table of private descriptors, without a stack. */
#include "region/fdmap.h"

#include "test/tap.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS  20000

static int allocated, room; /* blocks that are out, and that may still be had */

static void *get(void *context, size_t bytes)
{
	(void)context;
	if (__atomic_fetch_sub(&room, 1, __ATOMIC_RELAXED) <= 0)
		return NULL;
	__atomic_fetch_add(&allocated, 1, __ATOMIC_RELAXED);
	return calloc(1, bytes);
}

static void put(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	__atomic_fetch_sub(&allocated, 1, __ATOMIC_RELAXED);
	free(memory);
}

static const struct guise_fdmap_memory memory = { .get = get, .put = put };
static struct guise_fdmap *map;
static int taken;

/* All threads set and take the same descriptors: none is taken twice. */
static void *fight(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		int fd = i % 7 * 1000;

		if (guise_fdmap_get(map, fd) == GUISE_FD_EPOLL &&
		    guise_fdmap_change(map, fd, GUISE_FD_EPOLL, 0))
			__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
		if (guise_fdmap_take(map, fd))
			__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
		if (guise_fdmap_room(map, &memory, fd))
			abort();
		if (guise_fdmap_change(map, fd, 0, GUISE_FD_EPOLL))
			__atomic_fetch_sub(&taken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void under_threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, fight, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int fd = 0; (fd = guise_fdmap_next(map, fd)) >= 0; fd++)
		taken += guise_fdmap_take(map, fd) == GUISE_FD_EPOLL;
	tap(taken == 0, "what threads put in, one of them takes out");
}

int main(void)
{
	static const int odd[] = { -1, INT_MIN, INT_MAX, GUISE_FDMAP_MAX };
	bool empty = true, refused = true;

	room = 1;
	map = guise_fdmap_new(&memory);
	if (!map)
		return 1;
	for (unsigned int i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		empty &= !guise_fdmap_get(map, odd[i]) && !guise_fdmap_take(map, odd[i]);
		refused &= guise_fdmap_set(map, &memory, odd[i], 1, 0) == -EMFILE;
	}
	tap(empty && !guise_fdmap_get(map, 0) && !guise_fdmap_get(map, GUISE_FDMAP_MAX - 1),
	    "a new table is empty, whatever number is asked for");
	tap(refused, "a number outside the table is refused");
	tap(guise_fdmap_next(map, 0) == -1 && guise_fdmap_next(map, -5) == -1 &&
		    guise_fdmap_next(map, INT_MAX) == -1,
	    "there is nothing to go through in it");
	tap(guise_fdmap_set(map, &memory, 5, GUISE_FD_PRIVATE | 7, 0) == -ENOMEM &&
		    !guise_fdmap_change(map, 5, 0, 1),
	    "without memory there is no entry");

	room = 100;
	tap(!guise_fdmap_set(map, &memory, 5, GUISE_FD_PRIVATE | 7, 0) && allocated == 2 &&
		    guise_fdmap_get(map, 5) == (GUISE_FD_PRIVATE | 7) && !guise_fdmap_get(map, 4) &&
		    !guise_fdmap_get(map, 6),
	    "an entry is found again, in a chunk of its own");
	tap(!guise_fdmap_set(map, &memory, 1023, 1, 0) && allocated == 2 &&
		    !guise_fdmap_set(map, &memory, 1024, 2, 0) && allocated == 3 &&
		    !guise_fdmap_set(map, &memory, GUISE_FDMAP_MAX - 1, 3, 0) && allocated == 4,
	    "neighbours share a chunk");
	tap(guise_fdmap_next(map, 0) == 5 && guise_fdmap_next(map, 6) == 1023 &&
		    guise_fdmap_next(map, 1024) == 1024 &&
		    guise_fdmap_next(map, 1025) == GUISE_FDMAP_MAX - 1,
	    "all entries are gone through, in order");
	tap(!guise_fdmap_set(map, &memory, 1025, 4, 77) && guise_fdmap_inode(map, 1025) == 77 &&
		    !guise_fdmap_inode(map, 1026) && !guise_fdmap_inode(map, -1) &&
		    guise_fdmap_take(map, 1025) == 4,
	    "an inode stands beside its entry");
	tap(guise_fdmap_take(map, 1024) == 2 && !guise_fdmap_take(map, 1024) &&
		    guise_fdmap_next(map, 1024) == GUISE_FDMAP_MAX - 1,
	    "an entry is taken once");
	tap(!guise_fdmap_change(map, 5, 7, 8) &&
		    guise_fdmap_change(map, 5, GUISE_FD_PRIVATE | 7, 8) &&
		    guise_fdmap_get(map, 5) == 8,
	    "a change needs the entry that was seen");
	for (int fd = 0; (fd = guise_fdmap_next(map, fd)) >= 0; fd++)
		guise_fdmap_take(map, fd);
	under_threads();
	guise_fdmap_free(map, &memory);
	tap(allocated == 0, "all memory is given back");
	return tap_end();
}
