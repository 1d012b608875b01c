/* SPDX-License-Identifier: GPL-2.0-only */
/* All randomness comes from the host service entropy: getrandom, or a seed. */
#ifndef _ASM_GUISE_ARCHRANDOM_H
#define _ASM_GUISE_ARCHRANDOM_H

#include <linux/types.h>

size_t guise_random_longs(unsigned long *v, size_t max_longs);

static inline size_t __must_check arch_get_random_longs(unsigned long *v, size_t max_longs)
{
	return guise_random_longs(v, max_longs);
}

static inline size_t __must_check arch_get_random_seed_longs(unsigned long *v, size_t max_longs)
{
	return guise_random_longs(v, max_longs);
}

#endif
