/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_THREAD_INFO_H
#define _ASM_GUISE_THREAD_INFO_H

#include <asm/page.h>

/*
 * Twice the size that x86-64 has: interrupts and softirqs run on the stack of the
 * running context, and the host may put a signal frame (about 3 KiB) there as well.
 */
#define THREAD_SIZE_ORDER 3
#define THREAD_SIZE       (PAGE_SIZE << THREAD_SIZE_ORDER)

#ifndef __ASSEMBLY__
struct thread_info {
	unsigned long flags;
	int preempt_count;
	unsigned int cpu;
};

#define INIT_THREAD_INFO(tsk) { .flags = 0, .preempt_count = INIT_PREEMPT_COUNT }
#endif

#define TIF_SIGPENDING      0
#define TIF_NEED_RESCHED    1
#define TIF_NOTIFY_RESUME   2
#define TIF_NOTIFY_SIGNAL   3
#define TIF_RESTORE_SIGMASK 4
#define TIF_MEMDIE          5
#define TIF_SYSCALL_TRACE   6
#define TIF_POLLING_NRFLAG  7

#define _TIF_SIGPENDING    (1 << TIF_SIGPENDING)
#define _TIF_NEED_RESCHED  (1 << TIF_NEED_RESCHED)
#define _TIF_NOTIFY_RESUME (1 << TIF_NOTIFY_RESUME)
#define _TIF_NOTIFY_SIGNAL (1 << TIF_NOTIFY_SIGNAL)

/* What is to be done before a call returns to its program. */
#define _TIF_EXIT_WORK \
	(_TIF_SIGPENDING | _TIF_NEED_RESCHED | _TIF_NOTIFY_RESUME | _TIF_NOTIFY_SIGNAL)

#endif
