/* SPDX-License-Identifier: GPL-2.0-only */
/* A host thread's place in a stack. */
#ifndef GUISE_REGION_SLOT_H
#define GUISE_REGION_SLOT_H

#include "region/stack.h"

/* A free slot for process proc, not attached; NULL when all are taken. */
struct guise_slot *guise_slot_take(struct guise_stack *s, unsigned int proc);
/* The same for a process to come: the task is made before the process exists, and its first
 * thread takes the slot over. */
struct guise_slot *guise_slot_reserve(struct guise_stack *s, unsigned int proc);
void guise_slot_give(struct guise_stack *s, struct guise_slot *slot);

/* This thread's slot of the stack it used last. */
struct guise_here {
	struct guise_stack *stack;
	struct guise_slot *slot;
};
extern __thread struct guise_here guise_here;

/* Sets up what slots need. To be called early, where the handler of a signal could otherwise be
 * the first to need a slot. */
void guise_slots_begin(void);

/* False in such a child: its call is to give guise_slot_error(). */
bool guise_slots_seen(void);

/* This thread's end is to be seen, although it has no slot. */
void guise_slots_at_end(void);

/* The slot, made and attached at the first call. NULL on failure. */
struct guise_slot *guise_slot_attach(struct guise_stack *s);

/* This thread's slot if it has one. */
struct guise_slot *guise_slot_find(struct guise_stack *s);

/* Whether a process whose threads are to share fairly with others may have one more slot: as long
 * as more are free than it has. So n of them that take all they get have one (n+1)th each, and as
 * much stays free. */
bool guise_slots_are_left(const struct guise_stack *s);

/* Why guise_slot() gave none, as -errno; s may be gone by now. -ERESTART: s is not called directly
 * any more. */
long guise_slot_error(struct guise_stack *s);

/* In a forked child: it has none of the parent's slots. */
void guise_slots_forked(void);
/* From now on child() is called in a forked child for which guise_slots_forked() was not, in its
 * first call, which gives EBADF. child() may abandon the stack. */
void guise_slots_unseen(void (*child)(void));

/* The stack is about to be unmapped: forget this thread's slot in it. */
void guise_slot_forget(struct guise_stack *s);
/* Likewise: when this returns no thread gives back a slot in the stack any more, now or later. */
void guise_slots_leave(struct guise_stack *s);
/* A thread that refers to the stack (`known`) gives back what it has there: false if the stack has
 * been left. guise_slots_ended() has to follow, which drops the reference. */
bool guise_slots_ending(struct guise_stack *s);
void guise_slots_ended(struct guise_stack *s);
/* Drops a reference to the stack's structure, the owner's or that of a thread with a slot in it.
 * The last one frees the structure. */
void guise_slots_drop(struct guise_stack *s);

#endif
