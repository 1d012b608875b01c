/* SPDX-License-Identifier: GPL-2.0-only */
/* A gate before a stack, which this process's threads pass at each call. See gate.c. */
#ifndef GUISE_REGION_GATE_H
#define GUISE_REGION_GATE_H

#include "region/stack.h"

extern __thread bool guise_gate_mine;

/* Whether this thread has closed a gate, and so passes it. */
static inline bool guise_gate_is_mine(void)
{
	return guise_gate_mine;
}

/* The caller has all locks (guise_own_fork_prepare()), and a slot if it needs one. False: some
 * thread did not leave the stack in time; the gate is closed all the same. */
bool guise_gate_close(struct guise_stack *s);
/* From now on calls go by that route. */
void guise_gate_open(struct guise_stack *s, enum guise_route route);
/* Waits until the gate is open, unless it is this thread's. */
void guise_gate_pass(struct guise_stack *s);

#endif
