/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_NET_PROCESSOR_H
#define _ASM_GUISE_NET_PROCESSOR_H

/* The number of the processor that a packet is handled on, for sockets and filters: the
 * host's. Programs that have a thread on each processor use it. */
unsigned int guise_processor(void);
#define arch_net_processor() ((int)guise_processor())

#endif
