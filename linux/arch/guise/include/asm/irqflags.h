/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts are a flag. Nothing interrupts a running kernel context: pending
 * work is taken in when the virtual CPU idles or a call begins or ends (see
 * kernel/interrupt.c), so enabling them need not look for any.
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
