/* SPDX-License-Identifier: GPL-2.0-only */
/* What is done about a process that died while it was a member. */
#ifndef GUISE_REGION_BURY_H
#define GUISE_REGION_BURY_H

#include "region/stack.h"

/* In the holder: process index proc is dead. Does not wait. */
void guise_bury(struct guise_stack *s, unsigned int proc);

/* Holding the virtual CPU: does what guise_bury() has left to do. */
void guise_bury_pending(struct guise_stack *s);

/*
 * In the holder: whether the pump still has a burial to do. If so this wakes it again: a
 * wake-up can be missed when it comes just as the pump goes to sleep.
 */
bool guise_bury_unfinished(struct guise_stack *s);

/*
 * The owner of the virtual CPU is dead, and not inside the image any more: mends
 * what it may have been changing on the host side, and gives the virtual CPU up.
 */
void guise_take_over(struct guise_stack *s, struct guise_slot *slot);

#endif
