// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members in a sandbox: a program that gives up system calls (seccomp) may be
 * killed by its filter for one that guise would make on its behalf. From the
 * moment before, the moving of data and the waiting need none but futex(2):
 *
 *	leading		never: who waits leaves that to others and to the pump (wait.c)
 *	the bell	is rung by a thread of the holder, which a futex wakes (ask.c)
 *	frames		are left to who leads: out, the device is told that there is no room,
 *			and the leader, that there is somebody who waits for room; in,
 *			that there is none. What a link has gathered waits likewise
 *	random bytes	are made of some that were fetched before. They are but stirred into
 *			the kernel's pool, which was seeded long ago
 *	console		is silent
 *	signals		are not blocked while they are held, and handlers are called from
 *			here (host/signal.c)
 *
 * Limits: threads that make their first call after that, and whatever makes or
 * closes descriptors, make the calls of the host that this takes. A clock without
 * a vDSO is read by a system call.
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
