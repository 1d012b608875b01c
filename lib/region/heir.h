/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A place in the stack for a process to come: the child of a fork, or the next
 * program of a process.
 *
 * The process that will make it prepares it: the holder gives a place (join.h), and
 * the port puts a leader into it with a copy of this process's sockets
 * (linux/arch/guise/kernel/heir.c). What the child or the new program then inherits
 * from the host is one descriptor, the end of the place's private pair: its right to
 * that place. If that process never begins, or dies before it has reported on the pair, the
 * last copy of the end is closed, and the holder buries the place like that of any member.
 *
 * A place comes with all that a process needs to begin, a slot for its first thread
 * included: a process that has a place does not fail for lack of room.
 *
 * Nothing here allocates memory, because the child of a vfork prepares places, too.
 */
#ifndef GUISE_REGION_HEIR_H
#define GUISE_REGION_HEIR_H

#include "region/stack.h"

struct guise_heir {
	unsigned int proc; /* the place */
	int end;           /* close-on-exec; -1: none */
};

/*
 * Prepares a place. For a fork (n is 0) it gets a copy of this process's table of
 * descriptors, the stack's descriptors that are in the table, and keep, one more of them. For
 * an exec (n > 0) it gets the marked ones. The marks are memory of the stack
 * (GUISE_NR_ALLOC), which belongs to the place from then on. 0, or -errno with the sentence.
 */
int guise_heir_prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
		       struct guise_mark *marks, unsigned int n, int keep);
/*
 * What fork, clone or exec is to fail with after guise_heir_prepare() gave err: -EAGAIN or
 * -ENOMEM, as on a host that has no room for another process. 0 when err is 0, or when the
 * holder is gone: no process gets a place then, and one without can at least do other work.
 */
int guise_heir_error(int err);
/* Closes this process's copy of the end: the process begins without it, or will not come. */
void guise_heir_drop(struct guise_heir *heir);
/* In the forked child, which has the parent's memory: the stack is its own now. */
void guise_heir_become(struct guise_stack *s, struct guise_heir *heir);

#endif
