/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which of a process's descriptors are the stack's.
 *
 * A program knows host descriptors only. A private socket is backed by one
 * (its placeholder), and this table says which descriptor of the stack stands
 * behind it. It lies in the region, anchored at region->procs[].fdmap; guise/layout.h has
 * its format.
 *
 * Two levels: 1024 pointers to chunks of 1024 entries, a chunk made when the
 * first descriptor in it is. Reading takes no lock: two dependent loads, on
 * the path of every read() and write() of the program. Entries change by
 * atomic operations only, so that of two threads that close one descriptor
 * exactly one finds the entry. Chunks are never freed while the table lives. When
 * the process forks, the port copies the table for the child (kernel/heir.c).
 *
 * Limit: host descriptors below 1048576, the most a host allows by default;
 * stack descriptors likewise.
 */
#ifndef GUISE_REGION_FDMAP_H
#define GUISE_REGION_FDMAP_H

#include "guise/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUISE_FDMAP_MAX (GUISE_FDMAP_CHUNK * GUISE_FDMAP_CHUNK)

/* Where tables get their memory, zeroed; get() returns NULL when there is none. */
struct guise_fdmap_memory {
	void *(*get)(void *context, size_t bytes);
	void (*put)(void *context, void *memory, size_t bytes);
	void *context;
};

/* The entry of fd; 0 for any number that is not in the table. */
static inline uint32_t guise_fdmap_get(const struct guise_fdmap *map, int fd)
{
	unsigned int n = (unsigned int)fd;
	const struct guise_fdmap_chunk *chunk;

	if (__builtin_expect(n >= GUISE_FDMAP_MAX, 0))
		return 0;
	chunk = __atomic_load_n(&map->chunk[n / GUISE_FDMAP_CHUNK], __ATOMIC_CONSUME);
	if (!chunk)
		return 0;
	return __atomic_load_n(&chunk->entry[n % GUISE_FDMAP_CHUNK], __ATOMIC_RELAXED);
}

/* NULL when there is no memory. */
struct guise_fdmap *guise_fdmap_new(const struct guise_fdmap_memory *memory);
void guise_fdmap_free(struct guise_fdmap *map, const struct guise_fdmap_memory *memory);

/* Makes room for an entry of fd: 0, or as guise_fdmap_set(). */
int guise_fdmap_room(struct guise_fdmap *map, const struct guise_fdmap_memory *memory, int fd);

/* Writes an entry. 0, -EMFILE for a number beyond the table, or -ENOMEM. */
int guise_fdmap_set(struct guise_fdmap *map, const struct guise_fdmap_memory *memory, int fd,
		    uint32_t entry, uint32_t inode);

/* The inode that was set with the entry of fd. */
uint32_t guise_fdmap_inode(const struct guise_fdmap *map, int fd);

/* Removes an entry and returns what it was: to one caller only. */
uint32_t guise_fdmap_take(struct guise_fdmap *map, int fd);

/* Changes an entry if it still is what the caller saw. */
bool guise_fdmap_change(struct guise_fdmap *map, int fd, uint32_t seen, uint32_t entry);

/* The first descriptor >= fd that has an entry; -1 if none. */
int guise_fdmap_next(const struct guise_fdmap *map, int fd);

#endif
