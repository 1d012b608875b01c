/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The running task. With one virtual CPU it is a plain variable in the image's
 * data. Several virtual CPUs would need a reserved register to find theirs.
 */
#ifndef _ASM_GUISE_CURRENT_H
#define _ASM_GUISE_CURRENT_H

struct task_struct;
extern struct task_struct *guise_current __attribute__((visibility("hidden")));

#define get_current() (guise_current)
#define current       get_current()

#endif
