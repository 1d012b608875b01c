/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_IRQ_H
#define _ASM_GUISE_IRQ_H

#define NR_IRQS 1 /* at least 1 is needed; kernel/interrupt.c uses no numbers */

static inline int irq_canonicalize(int irq)
{
	return irq;
}

#endif
