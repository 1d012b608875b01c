/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_SWITCH_TO_H
#define _ASM_GUISE_SWITCH_TO_H

#include <asm-generic/switch_to.h>

/* kernel/task.c; called by the patched try_to_wake_up() */
bool guise_defer_wakeup(struct task_struct *p, int *success);
#define arch_defer_wakeup guise_defer_wakeup

#endif
