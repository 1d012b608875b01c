/* SPDX-License-Identifier: GPL-2.0-only */
/* Entering the stack. */
#ifndef GUISE_REGION_CALL_H
#define GUISE_REGION_CALL_H

#include "host/signal.h"
#include "region/stack.h"
#include "region/wait.h"

/* Makes the slot's kernel task; 0 or -errno. */
long guise_call_attach(struct guise_stack *s, struct guise_slot *slot);
/* Says whose the thread is: what a program of before has made does not know. */
void guise_call_identify(struct guise_stack *s, struct guise_slot *slot);
/* Ends the slot's kernel task. */
void guise_call_exit(struct guise_stack *s, struct guise_slot *slot);

/* What a call gave that was made once. */
struct guise_outcome {
	long ret;
	uint64_t signals; /* bit n-1: the program raises signal n */
	bool restart;     /* the call is repeated if the program's handlers have SA_RESTART */
};

/* The thread is no longer inside: handlers of held signals run now, and signals are raised.
 * Whether the call is to be repeated. ps: what it waited for besides, or NULL. */
static inline bool guise_call_again(const struct guise_outcome *o, const struct guise_pollset *ps)
{
	uint64_t signals = o->signals;
	bool again = o->restart;

	if (__builtin_expect(guise_signals_deferred(), 0)) {
		again = again && guise_signals_restart();
		guise_signals_deliver();
	} else if (ps && ps->ready > 0) {
		again = false;
	}
	for (; __builtin_expect(signals != 0, 0); signals &= signals - 1)
		guise_signal_raise(__builtin_ctzll(signals) + 1);
	return again;
}

/* A call that this thread makes for a program of another process. */
struct guise_foreign_call {
	uint64_t nr, arg[6];
	uint64_t window, window_from, window_size; /* see struct guise_slot */
	const uint32_t *interrupt;                 /* the call does not wait if this is `number` */
	uint32_t number;
	int signal; /* with a handler; to this thread it ends a wait */
};

/* Makes the call, once; signals of this thread only interrupt it. */
struct guise_outcome guise_call_foreign(struct guise_stack *s, const struct guise_foreign_call *f);

#endif
