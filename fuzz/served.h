/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For fuzzers of served programs (lib/served): a stack with the kernel that is shipped, its holder
 * in a thread of this process, and programs that join it, each with a servant. A servant is the
 * fuzzer's own program, started as the holder starts its own (holder/servant/begin.c).
 */
#ifndef GUISE_FUZZ_SERVED_H
#define GUISE_FUZZ_SERVED_H

#include "region/stack.h"

#include <sys/types.h>

#define SERVED_CONSOLE 201 /* what the kernel says in a servant goes there, too */

/* Makes the stack, in a process whose path is build/unit/fuzz/...; $GUISE_KERNEL names another
 * kernel. */
struct guise_stack *served_begin(void);
/* A new program's part of a served stack. */
struct guise_stack *served_join(void);
/* The program leaves; its servant is to end by itself, as it should. */
void served_leave(struct guise_stack *s, pid_t servant);
/* How many programs are on the stack; the process of the servant that came last. */
unsigned int served_members(void);
pid_t served_newest(void);
/* By which programs join. */
int served_ticket(void);
/* The kernel has not warned. */
void served_examine(void);

#endif
