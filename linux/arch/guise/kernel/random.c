// SPDX-License-Identifier: GPL-2.0-only
/*
 * Randomness, from the host service entropy. The kernel's generator is ready at
 * boot. In simulated time it gives the same numbers in every run with one seed.
 */
#include <linux/init.h>
#include <linux/random.h>

#include <asm/archrandom.h>
#include <asm/guise.h>

size_t guise_random_longs(unsigned long *v, size_t max_longs)
{
	guise_host_do(entropy, (u64)v, max_longs * sizeof(*v), 0);
	return max_longs;
}
