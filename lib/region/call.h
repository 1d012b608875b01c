/* SPDX-License-Identifier: GPL-2.0-only */
/* Entering the stack. */
#ifndef GUISE_REGION_CALL_H
#define GUISE_REGION_CALL_H

#include "region/stack.h"

/* Makes the slot's kernel task; 0 or -errno. */
long guise_call_attach(struct guise_stack *s, struct guise_slot *slot);
/* Says whose the thread is: what a program of before has made does not know. */
void guise_call_identify(struct guise_stack *s, struct guise_slot *slot);
/* Ends the slot's kernel task. */
void guise_call_exit(struct guise_stack *s, struct guise_slot *slot);

/* A call that this thread makes for a program of another process. */
struct guise_foreign_call {
	uint64_t nr, arg[6];
	uint64_t window, window_from, window_size; /* see struct guise_slot */
	const uint32_t *interrupt;                 /* the call does not wait if this is `number`, */
	uint32_t number;
	const uint32_t *stop; /* ... or this is not 0 */
	int signal;           /* with a handler; to this thread it ends a wait */
	long ret;
	uint64_t signals; /* bit n-1: the program is to raise signal n */
	bool restart;     /* it is to be repeated, if the program's handlers have SA_RESTART */
};

/* Makes the call; its result is in it. Once, and signals of this thread only interrupt it. */
void guise_call_foreign(struct guise_stack *s, struct guise_foreign_call *call);

#endif
