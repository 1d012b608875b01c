/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of a hostile program that is served, for a lane of its ring. */
#ifndef GUISE_FUZZ_SERVED_CALL_H
#define GUISE_FUZZ_SERVED_CALL_H

#include "random.h"

#include "served/ring.h"

#define SERVED_CALL_ROOM 32768u /* of a lane's room: what its calls use */

/* Addresses that the call must not reach. */
struct served_targets {
	unsigned int n;
	uint64_t address[16];
};

/* Writes number and arguments of a call into the lane, and what they point to into its room, which
 * lies at the same address for the program. */
void served_call_make(struct rng *r, struct guise_lane *lane, char *room,
		      const struct served_targets *targets);

/* Words of what was made last, which the kernel and the servant may be reading now. */
uint64_t *served_call_word(struct rng *r);

#endif
