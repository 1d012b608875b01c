/* SPDX-License-Identifier: GPL-2.0-only */
/* Bells that a process gets after it has joined; more_bells.c. */
#ifndef GUISE_REGION_MORE_BELLS_H
#define GUISE_REGION_MORE_BELLS_H

#include "region/stack.h"

struct guise_server;

/* Gets the bells that the stack has and this process has not; if there are none, more are made. */
void guise_bells_get(struct guise_stack *s, const struct guise_slot *slot);

/* No more for this process: its threads are to have tables of descriptors of their own, and a new
 * bell would be in one of them alone. */
void guise_bells_stay(struct guise_stack *s);

/* To be called before a thread sleeps, without the virtual CPU. alone: nobody else sleeps on its
 * bell. */
static inline void guise_bells_keep_up(struct guise_stack *s, const struct guise_slot *slot,
				       bool alone)
{
	if (__builtin_expect(!alone || s->bells_missed, 0) &&
	    __atomic_load_n(&s->bells, __ATOMIC_RELAXED) < s->region->bells_most)
		guise_bells_get(s, slot);
}

/* In the holder: sends a member, which has the first so many, the next ones, and makes them if
 * they are not there. 0 or -errno. */
int guise_bells_give(struct guise_server *v, unsigned int proc, unsigned int first);

#endif
