/* SPDX-License-Identifier: GPL-2.0-only */
/* Finishing a section of the virtual CPU that a thread was killed in. */
#ifndef GUISE_REGION_FINISH_H
#define GUISE_REGION_FINISH_H

#include "region/stack.h"

#include <sys/types.h>
#include <sys/user.h>

/* A thread that will never run again, and whose memory is still there. */
struct guise_killed {
	struct guise_slot *slot; /* owns the virtual CPU */
	struct user_regs_struct regs;
	/* Copies from its memory; bytes, or less when they are not all there. */
	ssize_t (*read)(void *context, uint64_t from, void *to, size_t bytes);
	void *context;
};

/* In the holder: does what is left of the section, and gives the virtual CPU up.
 * False: that cannot be done; the virtual CPU is still the dead thread's. */
bool guise_finish(struct guise_stack *s, struct guise_killed *k);

#endif
