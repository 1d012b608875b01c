/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The running task, in the image's own data: with one virtual CPU a plain
 * variable. Several virtual CPUs would find it through a reserved register.
 */
#ifndef _ASM_GUISE_CURRENT_H
#define _ASM_GUISE_CURRENT_H

struct task_struct;
extern struct task_struct *guise_current __attribute__((visibility("hidden")));

#define get_current() (guise_current)
#define current       get_current()

#endif
