/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_SWITCH_TO_H
#define _ASM_GUISE_SWITCH_TO_H

#include <asm-generic/switch_to.h>

/* kernel/task.c; try_to_wake_up() calls it, by patch 0001 in linux/patches. */
bool guise_defer_wakeup(struct task_struct *p, int *success);
#define arch_defer_wakeup guise_defer_wakeup

#endif
