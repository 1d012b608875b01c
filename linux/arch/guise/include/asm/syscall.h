/* SPDX-License-Identifier: GPL-2.0-only */
/* For tracers. No task of the stack is traced, so these have no effect. */
#ifndef _ASM_GUISE_SYSCALL_H
#define _ASM_GUISE_SYSCALL_H

#include <linux/err.h>
#include <linux/sched.h>
#include <asm/ptrace.h>

static inline int syscall_get_nr(struct task_struct *task, struct pt_regs *regs)
{
	return -1;
}

static inline void syscall_rollback(struct task_struct *task, struct pt_regs *regs)
{
}

static inline long syscall_get_error(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline long syscall_get_return_value(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline void syscall_set_return_value(struct task_struct *task, struct pt_regs *regs,
					    int error, long val)
{
}

static inline void syscall_get_arguments(struct task_struct *task, struct pt_regs *regs,
					 unsigned long *args)
{
}

static inline int syscall_get_arch(struct task_struct *task)
{
	return 0;
}

#endif
