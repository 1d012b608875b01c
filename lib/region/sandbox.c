// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members in a sandbox. A program that gives up system calls (seccomp) is killed by its
 * filter if guise makes a forbidden one in it. So from just before the filter is
 * installed, moving data and waiting need only futex(2):
 *
 *	leading		is left to other members' threads and to the pump (wait.c)
 *	the bell	is rung by a thread of the holder, which a futex wakes (ask.c)
 *	frames		are left to the leader. For a frame to be sent, the device is told that
 *			there is no room, and the leader that a thread waits for room; for a
 *			frame to be received, the device is told that there is none. Frames
 *			that a link has gathered wait in the same way
 *	random bytes	are made from some that were fetched before. They are only stirred into
 *			the kernel's pool, which was seeded long ago
 *	console		is silent
 *	signals		are not blocked while they are held, and handlers are called from
 *			here (host/signal.c)
 *
 * Limits: a thread's first call, and calls that make or close descriptors, still make
 * the host's system calls that they need. A clock without a vDSO is read by a system
 * call.
 */
#include "host/signal.h"
#include "host/sys.h"
#include "region/slot.h"
#include "region/stack.h"

void guise_sandbox(void)
{
	struct guise_stack *s;

	for (s = guise_stacks(); s; s = s->next) {
		if (s->sandboxed)
			continue;
		guise_slot(s); /* this thread's place takes calls of the host */
		host_sys(SYS_getrandom, s->reserve, sizeof(s->reserve), 0);
		guise_signals_sandbox();
		s->sandboxed = true;
	}
}
