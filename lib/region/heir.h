/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A place in the stack for a process to come: the child of a fork, or the next
 * program of a process.
 *
 * The process that will make it prepares it: the holder gives a place (join.h), and
 * the port puts a leader into it with a copy of this process's sockets
 * (linux/arch/guise/kernel/heir.c). What the child or the new program then inherits
 * from the host is one descriptor, the end of the place's private pair: its right to
 * that place. Should it never come, or die before it says so, the last copy of the end
 * is closed, and the holder buries the place like that of any member.
 *
 * A place is given with all that a process needs to begin, its first thread included: one
 * that has it does not fail for want of room.
 *
 * Nothing here allocates: the child of a vfork prepares, too.
 */
#ifndef GUISE_REGION_HEIR_H
#define GUISE_REGION_HEIR_H

#include "region/stack.h"

struct guise_heir {
	unsigned int proc; /* the place */
	int end;           /* close-on-exec; -1: none */
};

/*
 * After fork the place has this process's table of descriptors, and what stands in
 * it, and keep, a descriptor of the stack. After exec (n > 0) it has the marked ones.
 * The marks are memory of the stack (GUISE_NR_ALLOC) that is the place's from then on.
 * 0, or -errno with the sentence.
 */
int guise_heir_prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
		       struct guise_mark *marks, unsigned int n, int keep);
/*
 * What the call is to fail with that was to make the process: EAGAIN or ENOMEM, negative,
 * as a host's that has no room for another one. 0: err is 0, or the holder is gone. Then
 * nobody gets a place any more, and a process that goes without can at least do other work.
 */
int guise_heir_error(int err);
/* It will not come, or this process's copy of its end is not needed any more. */
void guise_heir_drop(struct guise_heir *heir);
/* In the forked child, which has the parent's memory: the stack is its own now. */
void guise_heir_become(struct guise_stack *s, struct guise_heir *heir);

#endif
