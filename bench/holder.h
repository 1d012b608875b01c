/* SPDX-License-Identifier: GPL-2.0-only */
/* A stack for one run: a guise-holder that this process starts. */
#ifndef BENCH_HOLDER_H
#define BENCH_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct holder {
	pid_t pid;
	int ticket; /* what members join with; close-on-exec here */
	int status;
};

/*
 * plan as in docs/plan.md; fd, when not -1, is open in the holder under the
 * same number. False with a sentence in why when the stack did not come up.
 */
bool holder_start(struct holder *h, const char *program, const char *plan, int fd, char *why,
		  size_t size);
/* The last member has left: waits for the holder's end. */
void holder_stop(struct holder *h);

#endif
