/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is not the heap's; see memory.c. */
#ifndef GUISE_HOST_MEMORY_H
#define GUISE_HOST_MEMORY_H

#include <stddef.h>

/* Pages, all zero; NULL when there are none. */
void *guise_pages(size_t bytes);
void guise_pages_free(void *pages, size_t bytes);

/*
 * Memory for the length of a call: what was taken last is given back first. NULL when there is
 * none. It is not cleared.
 */
void *guise_room_take(size_t bytes);
void guise_room_give(void *room, size_t bytes);

/* The same, for pthread_cleanup_push(). */
struct guise_room {
	void *at; /* NULL: none was taken */
	size_t bytes;
};
void guise_room_leave(void *room);

/* The thread ends: what it kept for its calls goes. */
void guise_room_end(void);

#endif
