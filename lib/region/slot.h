/* SPDX-License-Identifier: GPL-2.0-only */
/* A host thread's place in a stack. */
#ifndef GUISE_REGION_SLOT_H
#define GUISE_REGION_SLOT_H

#include "region/stack.h"

/* A free slot for process proc, not attached; NULL when all are taken. */
struct guise_slot *guise_slot_take(struct guise_stack *s, unsigned int proc);
/* The same for one that is to come: its task is made without it, and the first of its
 * threads takes it over. */
struct guise_slot *guise_slot_reserve(struct guise_stack *s, unsigned int proc);
void guise_slot_give(struct guise_stack *s, struct guise_slot *slot);

/* This thread's slot of the stack it used last. */
struct guise_here {
	struct guise_stack *stack;
	struct guise_slot *slot;
};
extern __thread struct guise_here guise_here;

/* Before the first, where it matters that no handler of a signal makes that. */
void guise_slots_begin(void);

/* The slot, made and attached at the first call. NULL on failure. */
struct guise_slot *guise_slot_attach(struct guise_stack *s);

/* This thread's slot if it has one. */
struct guise_slot *guise_slot_find(struct guise_stack *s);

/* Why guise_slot() gave none, as -errno; s may be gone by now. */
long guise_slot_error(struct guise_stack *s);

/* In a forked child: it has none of the parent's slots. */
void guise_slots_forked(void);
/* From now on child is called in the first call of a child for which nobody did that; it may
 * abandon the stack. The call gives EBADF. */
void guise_slots_unseen(void (*child)(void));

/* The stack goes away: forget this thread's slot in it. */
void guise_slot_forget(struct guise_stack *s);
/* It does: from now on no thread gives up a slot in it, and none is about to. */
void guise_slots_leave(struct guise_stack *s);
/* Whoever has the stack does not want it any more, or a thread that knows it: the last frees it. */
void guise_slots_drop(struct guise_stack *s);

#endif
