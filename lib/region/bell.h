/* SPDX-License-Identifier: GPL-2.0-only */
/* The bells: how a thread that sleeps in ppoll(2) is told to look at its slot. See bell.c. */
#ifndef GUISE_REGION_BELL_H
#define GUISE_REGION_BELL_H

#include "region/stack.h"

#define GUISE_BELLS_ALONE 4 /* of a stack that no other process joins */

/* How many the members should have: each has a descriptor of each. */
unsigned int guise_bells_for_members(void);
/* Makes bells until there are n, in the creator of a stack. 0, or -errno with a sentence. */
int guise_bells_make(struct guise_stack *s, unsigned int n);

void guise_ring_bell(struct guise_stack *s, unsigned int bell);
/* A bit each. */
void guise_ring_bells(struct guise_stack *s, uint64_t bells);

/* Back from ppoll, since its bell rang; guise_quiet_bell() is to follow. Not holding the
 * virtual CPU. */
void guise_empty_bell(struct guise_stack *s, struct guise_slot *slot);

/* The rest: holding the virtual CPU. */

/* The bell by which a slot is woken from now on: before it sleeps in ppoll. */
void guise_bell_choose(struct guise_region *r, struct guise_slot *slot);
/* The bell will be rung for this slot, which sleeps in ppoll. */
void guise_bell_owed(struct guise_region *r, struct guise_slot *slot);
/* This slot is awake, or its thread is no more: nothing is owed to it. */
void guise_bell_seen(struct guise_region *r, struct guise_slot *slot);
/* Back from a wait; rang: its bell did, and was emptied. Rings it for those it was for, too. */
void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, bool rang);
/* Counts anew to whom they are owed, after one died who may have been counting. */
void guise_bell_mend(struct guise_stack *s);

#endif
