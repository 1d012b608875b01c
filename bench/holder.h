/* SPDX-License-Identifier: GPL-2.0-only */
/* A stack for one run: a guise-holder that this process starts. */
#ifndef BENCH_HOLDER_H
#define BENCH_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct holder {
	pid_t pid;
	int ticket; /* close-on-exec here */
	int status;
};

/*
 * Starts a holder. plan is as in docs/plan.md; the n descriptors of fds are open in the
 * holder under the same numbers. False, with a sentence in why, if the stack was
 * not made.
 */
bool holder_start(struct holder *h, const char *program, const char *plan, const int *fds, int n,
		  char *why, size_t size);
/* Waits until the holder has ended, after the last member has left. */
void holder_stop(struct holder *h);

#endif
