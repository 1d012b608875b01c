/* SPDX-License-Identifier: GPL-2.0-only */
/* The servant's side of a served program. See servant.c. */
#ifndef GUISE_SERVED_SERVANT_H
#define GUISE_SERVED_SERVANT_H

#include "region/stack.h"
#include "served/ring.h"

#include <pthread.h>

struct guise_servant_lane {
	struct guise_servant *of;
	uint32_t tid;  /* of its thread */
	uint32_t busy; /* the number of the call that the thread makes; 0: none */
	bool begun;
	pthread_t thread;
};

struct guise_servant {
	struct guise_stack *stack;
	struct guise_ring *ring;
	int fd; /* of the ring */
	int bell[GUISE_LANE_BELLS];
	uint32_t stop;
	struct guise_servant_lane lane[GUISE_LANES];
};

/* Makes a ring and its bells: NULL with the sentence. */
struct guise_servant *guise_servant_make(struct guise_stack *s);
/* Serves until guise_servant_stop(), which any thread and any handler may call. */
void guise_servant_run(struct guise_servant *v);
void guise_servant_stop(struct guise_servant *v);
void guise_servant_free(struct guise_servant *v);

#endif
