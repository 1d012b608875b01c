/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether interrupts are enabled is a flag that has no effect: no running kernel
 * context is ever interrupted. kernel/interrupt.c says when pending work is done.
 * So nothing has to be looked for when interrupts are enabled.
 */
#ifndef _ASM_GUISE_IRQFLAGS_H
#define _ASM_GUISE_IRQFLAGS_H

#include <linux/types.h>

#define ARCH_IRQ_DISABLED 0
#define ARCH_IRQ_ENABLED  1

extern unsigned long guise_irq_flag;

static __always_inline unsigned long arch_local_save_flags(void)
{
	return guise_irq_flag;
}
#define arch_local_save_flags arch_local_save_flags

static __always_inline void arch_local_irq_restore(unsigned long flags)
{
	asm volatile("" ::: "memory");
	guise_irq_flag = flags;
	asm volatile("" ::: "memory");
}
#define arch_local_irq_restore arch_local_irq_restore

#include <asm-generic/irqflags.h>

#endif
