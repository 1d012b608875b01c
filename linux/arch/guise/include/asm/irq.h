/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_IRQ_H
#define _ASM_GUISE_IRQ_H

#define NR_IRQS 1 /* see kernel/interrupt.c: none is numbered */

static inline int irq_canonicalize(int irq)
{
	return irq;
}

#endif
