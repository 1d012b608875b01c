/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of a stack that has programs; changes.c has the theory. */
#ifndef GUISE_HOLDER_CHANGES_H
#define GUISE_HOLDER_CHANGES_H

#include "holder/plan.h"

#include <pthread.h>
#include <stdbool.h>

#define CHANGES_TEXT 1024 /* of a line, with its end */
#define CHANGES_FDS  PLAN_CHANGE_FDS

struct undo_line;

struct changes {
	struct plan *plan;
	pthread_t thread;
	bool running;
	int queue[2];           /* a pipe of struct change */
	struct undo_line *made; /* the last first */
	unsigned int n_made;
};

void changes_init(struct changes *c, struct plan *plan);
/*
 * Has the line carried out, "no LINE", or "reset", and the client answered. Never waits. The
 * descriptors are taken, whatever comes of it. 0, or -errno with a sentence: it is not carried out.
 */
int changes_ask(struct changes *c, int client, const char *line, const int *fd, unsigned int fds);
void changes_stop(struct changes *c);

#endif
