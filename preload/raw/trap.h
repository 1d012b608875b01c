/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls that a program makes past libc; see trap.c. */
#ifndef GUISE_PRELOAD_TRAP_H
#define GUISE_PRELOAD_TRAP_H

#include <stdbool.h>
#include <sys/types.h>

/* Finds what trapping needs, and begins to trap the calling thread. Once in each process. */
void preload_trap_begin(void);
/* From now on the calling thread's raw calls are seen. Does nothing where they cannot be. */
void preload_trap_thread(void);

/* The program has set the dispatch of its thread itself: the mode of the prctl. */
void preload_trap_dispatch_changed(long mode);
/* Raw calls of a process that cannot be seen are counted by process. */
void preload_trap_not_seen(void);
/* The vDSO has read this clock by a system call, which was trapped; clocks.c. */
void preload_clock_trapped(long clock);

/* Whether raw calls of this process can be seen at all. */
bool preload_trapping(void);

struct preload_arguments {
	long a, b, c, d, e, f;
};

/* syscall.c: the call of that number, as the kernel returns it. */
long preload_by_number(long nr, const struct preload_arguments *x);

#endif
