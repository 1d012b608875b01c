// SPDX-License-Identifier: GPL-2.0-only
/*
 * posix_spawn's file actions. The child executes them inside libc, past every
 * hook; what it must not close is the ticket (start.c), or the program that it
 * becomes could not join the stack, and its place's end (exec.c). guise's other
 * descriptors are closed by exec in any case.
 *
 * A socket that an action gives another number passes to the program, close-on-exec
 * or not: it is noted in the table.
 */
#include "preload/preload.h"

#include "host/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>

int preload_spawn_place(void)
{
	int none = -1, fd = __atomic_load_n(&preload.place, __ATOMIC_ACQUIRE);

	if (fd >= 0)
		return fd;
	fd = (int)host_sys(SYS_fcntl, preload.ticket, F_DUPFD_CLOEXEC, preload.own_low);
	if (fd >= 0 && !__atomic_compare_exchange_n(&preload.place, &none, fd, 0, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE)) {
		host_sys(SYS_close, fd);
		fd = none;
	}
	return fd;
}

static bool spared(int fd)
{
	return fd >= 0 && (fd == preload.ticket || fd == preload.place);
}

HOOK int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *actions, int fd)
{
	if (spared(fd))
		return 0;
	return HOST(posix_spawn_file_actions_addclose)(actions, fd);
}

HOOK int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
	int place = preload.stack ? preload_spawn_place() : -1, err = 0;
	int last = place > preload.ticket ? place : preload.ticket;

	for (; from >= 0 && from <= last && !err; from++)
		if (!spared(from))
			err = HOST(posix_spawn_file_actions_addclose)(actions, from);
	return err ? err : HOST(posix_spawn_file_actions_addclosefrom_np)(actions, from);
}

HOOK int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int new)
{
	uint32_t entry;

	do {
		entry = guise_fdmap_get(preload.map, fd);
	} while (entry & GUISE_FD_PRIVATE &&
		 !guise_fdmap_change(preload.map, fd, entry, entry | GUISE_FD_SPAWN));
	return HOST(posix_spawn_file_actions_adddup2)(actions, fd, new);
}
