/* SPDX-License-Identifier: GPL-2.0-only */
/* What a stack gets after a process has joined it: bells, and links; additions.c. */
#ifndef GUISE_REGION_ADDITIONS_H
#define GUISE_REGION_ADDITIONS_H

#include "region/stack.h"

struct guise_server;

/* The message that brings descriptors over a member's channel. */
struct guise_addition {
	uint32_t what;  /* enum guise_ask: BELLS or LINKS */
	uint32_t first; /* of bells: the number of the first; of links: region->links_now then */
	uint32_t generation[GUISE_MAX_LINKS]; /* of each link that comes along; 0: it does not */
	uint8_t fds[GUISE_MAX_LINKS];         /* how many descriptors of it, in their order */
};

_Static_assert(sizeof(struct guise_addition) == 88, "on the wire");

/* This process's descriptors are not those of all links that the stack has now. */
static inline bool guise_links_stale(const struct guise_stack *s)
{
	return s->links_seen != __atomic_load_n(&s->region->links_now, __ATOMIC_ACQUIRE);
}

/* The link's descriptors in this process, or NULL if it has them not, or not yet. */
static inline struct guise_link_port *guise_link_port(struct guise_stack *s, unsigned int i)
{
	struct guise_link_port *port = &s->port[i];

	return __atomic_load_n(&port->backend, __ATOMIC_ACQUIRE) &&
			       port->generation == s->region->links[i].generation
		       ? port
		       : NULL;
}

/* Asks for what the stack has and this process has not, or takes what has come. bells: it lacks
 * some; if all have those that there are, more are made. */
void guise_additions_get(struct guise_stack *s, const struct guise_slot *slot, bool bells);

/* Holding the virtual CPU: puts links that have come in place of those that are gone. */
void guise_additions_place(struct guise_stack *s);

/* No more for this process: its threads are to have tables of descriptors of their own, and a new
 * descriptor would be in one of them alone. */
void guise_additions_stay(struct guise_stack *s);

/* Closes links that have come and are in no place yet. */
void guise_additions_close(struct guise_stack *s);

/* To be called before a thread sleeps, without the virtual CPU. alone: nobody else sleeps on its
 * bell. */
static inline void guise_additions_keep_up(struct guise_stack *s, const struct guise_slot *slot,
					   bool alone)
{
	const bool bells = __builtin_expect(!alone || s->bells_missed, 0) &&
			   __atomic_load_n(&s->bells, __ATOMIC_RELAXED) < s->region->bells_most;

	if (__builtin_expect(bells || guise_links_stale(s), 0))
		guise_additions_get(s, slot, bells);
}

/* In the holder: sends a member, which has the first so many, the next bells, and makes them if
 * they are not there. 0 or -errno. */
int guise_bells_give(struct guise_server *v, unsigned int proc, unsigned int first);
/* ... and the descriptors of all links. */
int guise_links_give(struct guise_server *v, unsigned int proc);

#endif
