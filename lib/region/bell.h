/* SPDX-License-Identifier: GPL-2.0-only */
/* The bell: how a thread that sleeps in ppoll(2) is told to look at its slot. See bell.c. */
#ifndef GUISE_REGION_BELL_H
#define GUISE_REGION_BELL_H

#include "region/stack.h"

void guise_ring_bell(struct guise_stack *s);

/* The rest: holding the virtual CPU. */

/* The bell will be rung for this slot, which sleeps in ppoll. */
void guise_bell_owed(struct guise_region *r, struct guise_slot *slot);
/* This slot is awake, or its thread is no more: nothing is owed to it. */
void guise_bell_seen(struct guise_region *r, struct guise_slot *slot);
/* Back from ppoll, or another wait; rang: the bell did. Empties it, when it may be. */
void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, bool rang);
/* Counts anew to whom it is owed, after one died who may have been counting. */
void guise_bell_mend(struct guise_stack *s);

#endif
