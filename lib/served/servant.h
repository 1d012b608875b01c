/* SPDX-License-Identifier: GPL-2.0-only */
/* The servant's side of a served program. See servant.c. */
#ifndef GUISE_SERVED_SERVANT_H
#define GUISE_SERVED_SERVANT_H

#include "region/stack.h"
#include "served/ring.h"

struct guise_servant_lane {
	struct guise_servant *of;
	uint32_t tid;  /* of its thread */
	uint32_t busy; /* the number of the call that the thread makes; 0: none */
	bool begun;
};

struct guise_servant {
	struct guise_stack *stack;
	struct guise_ring *ring;
	int fd; /* of the ring */
	int bell[GUISE_LANE_BELLS];
	uint64_t counted[GUISE_COUNTS]; /* what the stack has of the ring's counts */
	struct guise_servant_lane lane[GUISE_LANES];
};

/* Makes a ring and its bells: NULL with the sentence. */
struct guise_servant *guise_servant_make(struct guise_stack *s);
/* When the calling thread ends the program hears that its servant is gone. */
void guise_servant_lives(struct guise_servant *v);
/* Serves for as long as this process lives. */
__attribute__((noreturn)) void guise_servant_run(struct guise_servant *v);
/* What the program has counted goes to the stack; after each call, and to be called at the end. */
void guise_servant_count(struct guise_servant *v);
/* For one that has not run in this process. */
void guise_servant_free(struct guise_servant *v);

#endif
