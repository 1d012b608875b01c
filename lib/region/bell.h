/* SPDX-License-Identifier: GPL-2.0-only */
/* The bells: how a thread that sleeps in ppoll(2) is told to look at its slot. See bell.c. */
#ifndef GUISE_REGION_BELL_H
#define GUISE_REGION_BELL_H

#include "region/stack.h"

#define GUISE_BELLS_FIRST 8    /* all processes have these */
#define GUISE_NO_BELL     (-1) /* none of them rang */

/* Who sleeps on a bell sleeps on this one, too. */
static inline unsigned int guise_bell_first(unsigned int bell)
{
	return bell % GUISE_BELLS_FIRST;
}

/* How many bells the stack of this process may have: each member has a descriptor of each. */
unsigned int guise_bells_most(void);
/* The descriptor of a new one, or -errno. */
int guise_bell_make(void);
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

/* To be called, without the virtual CPU, when ppoll returned because a bell rang.
 * guise_quiet_bell() has to follow. */
void guise_empty_bell(struct guise_stack *s, struct guise_slot *slot, unsigned int bell);

/* The rest is called holding the virtual CPU. */

/* Gives a slot the bell by which it is woken from now on: before it sleeps in ppoll. False if
 * others sleep on that bell, too. */
bool guise_bell_take(struct guise_stack *s, struct guise_slot *slot);
/* A bell will be rung for this slot, which sleeps in ppoll: the one that is returned. */
unsigned int guise_bell_owed(struct guise_stack *s, struct guise_slot *slot);
/* This slot is awake, or its thread has ended: it has no bell, and none has to ring for it. */
void guise_bell_leave(struct guise_region *r, struct guise_slot *slot);
/* This slot is back from a wait; rang: the bell that rang, and was emptied, or GUISE_NO_BELL.
 * Rings that bell again for other slots that have not seen it. */
void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, int rang);
/* Counts anew which slots each bell has, and was rung for: a thread may have died while it
 * counted. */
void guise_bell_mend(struct guise_stack *s);

#endif
