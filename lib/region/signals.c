// SPDX-License-Identifier: GPL-2.0-only
/*
 * What handlers of signals (host/signal.h) ask of this process's stacks. All of it is called by a
 * handler, at any moment of a thread: nothing here waits, allocates or takes a lock.
 */
#include "host/signal.h"
#include "region/bell.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/wait.h"
#include "served/client.h"

#define WINDOW (1ull << 32) /* each region lies in one of its own: create.c has the list */

/* A bad pointer of the program's, in a copy that the image guards. */
static uintptr_t fixup(uintptr_t pc)
{
	for (const struct guise_stack *s = guise_stacks(); s; s = s->next) {
		uint64_t base = s->region->base;

		if (pc >= base + s->image->copy_start && pc < base + s->image->copy_end)
			return base + s->image->copy_fixup;
	}
	return 0;
}

static void wake(void)
{
	guise_served_wake();
	if (guise_here.slot)
		guise_wait_interrupt(guise_here.stack, guise_here.slot);
}

static bool has(uintptr_t address)
{
	for (const struct guise_stack *s = guise_stacks(); s; s = s->next)
		if (((uintptr_t)s->region ^ address) < WINDOW)
			return true;
	return false;
}

const struct guise_signal_stacks guise_stacks_signals = { fixup, wake, has };
