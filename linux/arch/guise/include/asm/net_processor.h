/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_NET_PROCESSOR_H
#define _ASM_GUISE_NET_PROCESSOR_H

/* What sockets and filters are told of the processor that a packet is handled on: the
 * host's, whose number means something to programs that have a thread on each. */
unsigned int guise_processor(void);
#define arch_net_processor() ((int)guise_processor())

#endif
