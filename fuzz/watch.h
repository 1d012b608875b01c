/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A backend between the port and the one that is tested: it hands every call
 * on, and keeps account of what becomes of each frame.
 *
 * The port counts a frame before it asks for the next one, so two calls in
 * front and behind say what became of that frame: accepted, malformed, or lost
 * without being counted. What the backend itself drops within a call was
 * malformed as well. Frames keep their order, so if what is fed is known, each
 * fate belongs to a certain frame, which frame_verdict() has an opinion on.
 */
#ifndef GUISE_FUZZ_WATCH_H
#define GUISE_FUZZ_WATCH_H

#include "frame.h"

#include "region/stack.h"

struct watch {
	/* Sums. */
	uint64_t accepted, malformed, lost;
	uint64_t malformed_in_backend; /* of malformed */
	/* The first thing that was wrong; empty: nothing. */
	char finding[512];
};

/* Puts the watch between link `index` of s and its backend; one at a time. */
struct watch *watch_link(struct guise_stack *s, unsigned int index);

/*
 * What the link is about to be fed: n frames in this order, all that come;
 * NULL: nobody knows, judge what comes by itself.
 */
void watch_expect(const struct frame *frames, uint32_t n);

/* Whether the backend had nothing left when the port last asked; forgets it. */
bool watch_drained(void);

#endif
