/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks of the preload library: all of them, in the order in which a thread may take several.
 * lib/host/locks.c has the rule that they keep, and says what a fork does.
 *
 *	guise_own_lock(PRELOAD_LOCK_SHELL);
 *	...
 *	guise_own_unlock(PRELOAD_LOCK_SHELL);
 */
#ifndef GUISE_PRELOAD_LOCKS_H
#define GUISE_PRELOAD_LOCKS_H

#include "host/locks.h"

enum preload_lock {
	PRELOAD_LOCK_COMPLETION, /* asynchronous requests: completion.c */
	PRELOAD_LOCK_SHELL,      /* shells of system() and popen(): shell.c */
	PRELOAD_LOCK_SPAWN,      /* the number that a spawned program's place has: spawn.c */
	PRELOAD_LOCK_RINGS,      /* mapped rings: mapping.c */
	PRELOAD_LOCK_HOST,       /* the host that gethostbyname() returned last: hostent.c */
	PRELOAD_LOCK_BEGIN,      /* joining, the table of descriptors, what is begun once */
	PRELOAD_LOCKS
};

_Static_assert(PRELOAD_LOCKS <= GUISE_LOCKS_ABOVE, "host/locks.h has room for fewer");

#endif
