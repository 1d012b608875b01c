/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The value that protects stacks (-fstack-protector): one for all tasks of a region, from
 * the host service entropy, so another one in each region, and the same in each run with
 * one seed. It is in the region, because a context runs on any of the stack's host
 * threads: a value in a register of the thread, as programs have it, would be another one
 * after a switch.
 */
#ifndef _ASM_GUISE_STACKPROTECTOR_H
#define _ASM_GUISE_STACKPROTECTOR_H

extern unsigned long __stack_chk_guard;

/* Only in functions that never return. */
static __always_inline void boot_init_stack_canary(void)
{
	current->stack_canary = get_random_canary();
	__stack_chk_guard = current->stack_canary;
}

#endif
