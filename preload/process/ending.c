// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that end a process, or take rights from it.
 *
 * Some calls end the process at once, with its other threads wherever these are. Before
 * such a call the other threads are kept out of the stack. exit() and quick_exit() have no
 * hook here: the last function that they call does the same (lib/region/leave.c).
 *
 * In a vfork child nothing is done: the threads are the parent's and go on. A
 * program with a handler for SIGABRT may come back from abort() by a jump.
 */
#include "preload/isa/isa.h"
#include "preload/preload.h"

#include "host/signal.h"
#include "region/stack.h"
#include "served/client.h"

#include <signal.h>
#include <stdlib.h>

void preload_leave_quietly(void)
{
	int saved;

	if (!preload.stack || preload_isa_without_storage())
		return;
	saved = errno;
	if (preload.sandboxed || !preload_borrowed())
		guise_leave_quietly();
	errno = saved;
}

/*
 * The program puts itself into a sandbox. It gives up the region, while it may still make the
 * system calls for that. guise cannot know what the filter lets through; so from now on it makes
 * none but futex(2) where data is moved (served/client.c), and holds signals without any
 * (host/signal.c). If the host then refuses the filter, no harm is done.
 */
void preload_sandbox(void)
{
	int saved = errno;

	if (preload_stack() && !preload_borrowed()) {
		preload_prepare(); /* while it may: an epoll may be made yet, and a socket not */
		preload_give_up();
		guise_call(preload.stack, GUISE_NR_getpid, 0, 0, 0, 0, 0, 0); /* the first */
		if (preload.stack->served)
			guise_served_sandbox(preload.stack->served);
		guise_signals_sandbox();
		preload.sandboxed = true;
	}
	errno = saved;
}

HOOK void _exit(int status)
{
	preload_leave_quietly();
	HOST(_exit)(status);
	__builtin_unreachable();
}

HOOK void _Exit(int status)
{
	_exit(status);
}

HOOK void abort(void)
{
	struct sigaction act;

	if (!sigaction(SIGABRT, NULL, &act) && act.sa_handler == SIG_DFL)
		preload_leave_quietly();
	HOST(abort)();
	__builtin_unreachable();
}
