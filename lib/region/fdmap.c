// SPDX-License-Identifier: GPL-2.0-only
/* See fdmap.h. */
#include "region/fdmap.h"

#include <errno.h>

#define CHUNK_BYTES sizeof(struct guise_fdmap_chunk)

_Static_assert(sizeof(struct guise_fdmap) == 8192 || sizeof(void *) != 8,
	       "a table is two pages: members of different builds share it");

static uint32_t *entry_of(const struct guise_fdmap *map, int fd)
{
	unsigned int n = (unsigned int)fd;
	struct guise_fdmap_chunk *chunk;

	if (n >= GUISE_FDMAP_MAX)
		return NULL;
	chunk = __atomic_load_n(&map->chunk[n / GUISE_FDMAP_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk->entry[n % GUISE_FDMAP_CHUNK] : NULL;
}

struct guise_fdmap *guise_fdmap_new(const struct guise_fdmap_memory *memory)
{
	return memory->get(memory->context, sizeof(struct guise_fdmap));
}

void guise_fdmap_free(struct guise_fdmap *map, const struct guise_fdmap_memory *memory)
{
	for (unsigned int i = 0; i < GUISE_FDMAP_CHUNK; i++)
		if (map->chunk[i])
			memory->put(memory->context, map->chunk[i], CHUNK_BYTES);
	memory->put(memory->context, map, sizeof(*map));
}

int guise_fdmap_room(struct guise_fdmap *map, const struct guise_fdmap_memory *memory, int fd)
{
	unsigned int n = (unsigned int)fd;
	struct guise_fdmap_chunk *chunk, *none = NULL;

	if (n >= GUISE_FDMAP_MAX)
		return -EMFILE;
	if (entry_of(map, fd))
		return 0;
	chunk = memory->get(memory->context, CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	/* Another thread may have been first: then its chunk counts. */
	if (!__atomic_compare_exchange_n(&map->chunk[n / GUISE_FDMAP_CHUNK], &none, chunk, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		memory->put(memory->context, chunk, CHUNK_BYTES);
	return 0;
}

int guise_fdmap_set(struct guise_fdmap *map, const struct guise_fdmap_memory *memory, int fd,
		    uint32_t entry, uint32_t inode)
{
	int err = guise_fdmap_room(map, memory, fd);

	if (!err) {
		map->chunk[fd / GUISE_FDMAP_CHUNK]->inode[fd % GUISE_FDMAP_CHUNK] = inode;
		__atomic_store_n(entry_of(map, fd), entry, __ATOMIC_RELEASE);
	}
	return err;
}

uint32_t guise_fdmap_inode(const struct guise_fdmap *map, int fd)
{
	return entry_of(map, fd) ? map->chunk[fd / GUISE_FDMAP_CHUNK]->inode[fd % GUISE_FDMAP_CHUNK]
				 : 0;
}

uint32_t guise_fdmap_take(struct guise_fdmap *map, int fd)
{
	uint32_t *entry = entry_of(map, fd);

	/* Most descriptors that are closed are the host's: no atomic exchange for them. */
	if (!entry || !__atomic_load_n(entry, __ATOMIC_RELAXED))
		return 0;
	return __atomic_exchange_n(entry, 0, __ATOMIC_ACQ_REL);
}

bool guise_fdmap_change(struct guise_fdmap *map, int fd, uint32_t seen, uint32_t entry)
{
	uint32_t *place = entry_of(map, fd);

	return place && __atomic_compare_exchange_n(place, &seen, entry, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
}

int guise_fdmap_next(const struct guise_fdmap *map, int fd)
{
	unsigned int n = fd < 0 ? 0 : (unsigned int)fd;

	while (n < GUISE_FDMAP_MAX) {
		const uint32_t *entry = entry_of(map, (int)n);

		if (!entry) {
			n = (n / GUISE_FDMAP_CHUNK + 1) * GUISE_FDMAP_CHUNK;
			continue;
		}
		if (__atomic_load_n(entry, __ATOMIC_RELAXED))
			return (int)n;
		n++;
	}
	return -1;
}
