/* SPDX-License-Identifier: GPL-2.0-only */
/* The bells: how a thread that sleeps in ppoll(2) is told to look at its slot. See bell.c. */
#ifndef GUISE_REGION_BELL_H
#define GUISE_REGION_BELL_H

#include "region/stack.h"

#define GUISE_BELLS_ALONE 4 /* of a stack that no other process joins */

/* How many bells a stack with members should have: each member has a descriptor of each bell. */
unsigned int guise_bells_for_members(void);
/* Makes bells until there are n, in the creator of a stack. 0, or -errno with a sentence. */
int guise_bells_make(struct guise_stack *s, unsigned int n);

void guise_ring_bell(struct guise_stack *s, unsigned int bell);

/* Some of the bells: a bit each. */
struct guise_bell_set {
	uint64_t word[GUISE_BELLS / 64];
};

static inline void guise_bell_add(struct guise_bell_set *set, unsigned int bell)
{
	set->word[bell / 64] |= 1ull << bell % 64;
}

void guise_ring_bells(struct guise_stack *s, const struct guise_bell_set *set);

/* To be called, without the virtual CPU, when ppoll returned because this slot's bell rang.
 * guise_quiet_bell() has to follow. */
void guise_empty_bell(struct guise_stack *s, struct guise_slot *slot);

/* The rest is called holding the virtual CPU. */

/* The bell by which a slot is woken from now on: before it sleeps in ppoll. */
void guise_bell_take(struct guise_region *r, struct guise_slot *slot);
/* The bell will be rung for this slot, which sleeps in ppoll. */
void guise_bell_owed(struct guise_region *r, struct guise_slot *slot);
/* This slot is awake, or its thread has ended: it has no bell, and none has to ring for it. */
void guise_bell_leave(struct guise_region *r, struct guise_slot *slot);
/* This slot is back from a wait; rang: by its bell, which was emptied. Rings that bell again
 * for other slots that have not seen it. */
void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, bool rang);
/* Counts anew which slots each bell has, and was rung for: a thread may have died while it
 * counted. */
void guise_bell_mend(struct guise_stack *s);

#endif
