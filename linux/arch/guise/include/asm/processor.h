/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_PROCESSOR_H
#define _ASM_GUISE_PROCESSOR_H

#include <asm/page.h>
#include <asm/ptrace.h>

struct task_struct;
struct guise_slot;

/* Kernel and program have one address space; a program may use all of it. */
#define TASK_SIZE          (~0UL)
#define TASK_UNMAPPED_BASE 0
#define STACK_TOP          TASK_SIZE
#define STACK_TOP_MAX      STACK_TOP

struct thread_struct {
	unsigned long sp;        /* the parked context's stack pointer */
	struct guise_slot *slot; /* of a shadow task: its thread's; else NULL */
	int (*fn)(void *arg);    /* what a new context calls */
	void *arg;
};

#define INIT_THREAD { .sp = 0 }
#define INIT_SP     (sizeof(init_stack) + (unsigned long)&init_stack)

/* Never used: the port starts no program. */
#define start_thread(regs, pc, sp) ((void)0)
#define KSTK_EIP(tsk)              0UL
#define KSTK_ESP(tsk)              0UL
#define task_pt_regs(tsk)          (&guise_no_regs)

extern struct pt_regs guise_no_regs;

unsigned long __get_wchan(struct task_struct *p);

#define cpu_relax() barrier()

#endif
