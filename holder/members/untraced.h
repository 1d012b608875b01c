/* SPDX-License-Identifier: GPL-2.0-only */
/* Why the holder is not the tracer of a member. */
#ifndef GUISE_HOLDER_UNTRACED_H
#define GUISE_HOLDER_UNTRACED_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* guise_proc.untraced: 0 means that it is traced, or gone. */
enum untraced {
	UNTRACED_NOT,
	UNTRACED_LET_GO,     /* it was asked for (guise detach, a debugger, a setuid program) */
	UNTRACED_OCCUPIED,   /* something else traces it */
	UNTRACED_USER,       /* it is another user's */
	UNTRACED_UNDUMPABLE, /* it forbids that: PR_SET_DUMPABLE */
	UNTRACED_REFUSED,    /* the host's kernel does */
	UNTRACED_WHYS,
};

/* Why that process of a stack of that user cannot be traced (EPERM). */
enum untraced untraced_why(pid_t pid, uid_t user);

/* The end of a sentence: "process 4711 ...". */
const char *untraced_sentence(enum untraced why);

/* Writes how many there were, as members of a JSON object:
 * "untraced":2,"untraced_why":["occupied"] */
void untraced_write(const uint64_t count[UNTRACED_WHYS], FILE *out);

#endif
