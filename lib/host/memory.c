// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is not the heap's.
 *
 * The rule: a function that the handler of a signal may call (signal-safety(7)), or the child of
 * a process with several threads, uses neither malloc() nor free(). The interrupted thread may be
 * in the middle of malloc(); and in the child, a lock of malloc()'s that another thread held
 * stays taken for ever.
 *
 * Memory that stays is whole pages. Memory for the length of a call (poll() of many descriptors)
 * comes from a piece that each thread keeps, in which taking and giving back are two additions. A
 * handler that interrupts a call takes memory behind the call's. A handler that interrupts the
 * taking itself does the same, and has given all back before the taking goes on. A handler that
 * is left by a jump gives nothing back: that happens when an earlier call of the thread ends, or
 * the thread.
 *
 * The piece grows while it is not in use, up to ROOM_MOST. A call that needs more than is left in
 * it gets pages of its own.
 */
#include "host/memory.h"

#include "host/sys.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#define ROOM_LEAST 16384
#define ROOM_MOST  262144
#define ALIGN      16

static __thread struct {
	char *at;
	size_t size, used;
	bool growing;
} mine __attribute__((tls_model("initial-exec")));

/* A handler of this thread sees what is above before what is below. */
#define IN_ORDER() __asm__ volatile("" ::: "memory")

void *guise_pages(size_t bytes)
{
	long at = host_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	return (unsigned long)at > -4096UL ? NULL : (void *)at;
}

void guise_pages_free(void *pages, size_t bytes)
{
	if (pages)
		host_sys(SYS_munmap, pages, bytes);
}

static size_t rounded(size_t bytes)
{
	return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* A handler meanwhile has pages of its own. */
static void grow(size_t bytes)
{
	size_t size = ROOM_LEAST, old_size;
	char *at, *old;

	mine.growing = true;
	IN_ORDER();
	old = mine.at;
	old_size = mine.size;
	while (size < bytes)
		size *= 2;
	at = guise_pages(size);
	if (at) {
		mine.at = at;
		mine.size = size;
	}
	IN_ORDER();
	mine.growing = false;
	if (at)
		guise_pages_free(old, old_size);
}

void *guise_room_take(size_t bytes)
{
	char *room;

	bytes = rounded(bytes);
	if (bytes > mine.size && bytes <= ROOM_MOST && !mine.used && !mine.growing)
		grow(bytes);
	if (bytes > mine.size - mine.used || mine.growing)
		return guise_pages(bytes);
	room = mine.at + mine.used;
	IN_ORDER();
	mine.used += bytes;
	return room;
}

void guise_room_give(void *room, size_t bytes)
{
	uintptr_t at = (uintptr_t)room - (uintptr_t)mine.at;

	if (mine.at && at < mine.size)
		mine.used = at;
	else
		guise_pages_free(room, rounded(bytes));
}

void guise_room_leave(void *room)
{
	const struct guise_room *r = room;

	if (r->at)
		guise_room_give(r->at, r->bytes);
}

void guise_room_end(void)
{
	char *at = mine.at;
	size_t size = mine.size;

	mine.size = mine.used = 0;
	IN_ORDER();
	mine.at = NULL;
	guise_pages_free(at, size);
}
