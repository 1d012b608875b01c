/* SPDX-License-Identifier: GPL-2.0-only */
/* The fuzzers' chance: splitmix64 (Steele, Lea, Flood 2014), so that a seed repeats a run. */
#ifndef GUISE_FUZZ_RANDOM_H
#define GUISE_FUZZ_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 to n - 1; n from 1 to 2^32 - 1. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
	return !rng_below(r, n);
}

#define rng_pick(r, list) ((list)[rng_below((r), sizeof(list) / sizeof((list)[0]))])

#endif
