/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The main program of a fuzzer that goes by turns, each of which makes an input
 * and judges what becomes of it:
 *
 *	NAME_fuzz [--turns N | --seconds S] [--seed N]
 *
 * Without either it goes on for $FUZZ_SECONDS, or a minute. The first finding
 * ends it with status 1; otherwise its last line holds its sums. A seed repeats
 * a run of so many turns, as far as it has one thread.
 */
#ifndef GUISE_FUZZ_TURNS_H
#define GUISE_FUZZ_TURNS_H

#include "random.h"

#define TURNS_SUMS 6 /* the most that a fuzzer has */

struct turns {
	const char *name;    /* ring, of ring_fuzz */
	const char *where;   /* a finding is: in the ring */
	void (*begin)(void); /* or NULL */
	void (*turn)(struct rng *r, uint64_t number);
	void (*end)(struct rng *r); /* or NULL */
	struct {
		const char *name;
		const uint64_t *sum;
	} sums[TURNS_SUMS];
};

int turns_main(const struct turns *fuzzer, int argc, char **argv);

/* What is wrong, said of the turn at hand. */
__attribute__((noreturn, format(printf, 1, 2))) void turns_found(const char *format, ...);
__attribute__((noreturn)) void turns_fail(const char *what, int64_t value);

/* For what must be there for a fuzzer to run at all; errno says why it is not. */
void turns_need(bool good, const char *what);

#endif
