// SPDX-License-Identifier: GPL-2.0-only
/*
 * posix_spawn's file actions. The child carries them out inside libc, past every
 * hook. It must not close two descriptors: the ticket (start.c), without which the next
 * program could not join the stack, and the end of its place (exec.c). guise's other
 * descriptors are closed by exec in any case.
 *
 * A socket that an action gives another number passes to the program even if it is
 * close-on-exec: this is noted in the table.
 */
#include "preload/preload.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/stack.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/resource.h>

int preload_spawn_place(void)
{
	int none = -1, fd = __atomic_load_n(&preload.place, __ATOMIC_ACQUIRE);

	if (fd >= 0)
		return fd;
	fd = guise_fd_copy(preload.ticket);
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

/*
 * No action can name a number at or above the soft limit. If guise's own are there, the program
 * hardly has others there, because they would be from a time when the limit was higher. Such ones
 * stay open in the new program.
 */
HOOK int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
	int place = preload.stack ? preload_spawn_place() : -1, err = 0;
	int last = place > preload.ticket ? place : preload.ticket;
	struct rlimit limit = { INT_MAX, INT_MAX };

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	for (; from >= 0 && from <= last && (rlim_t)from < limit.rlim_cur && !err; from++)
		if (!spared(from))
			err = HOST(posix_spawn_file_actions_addclose)(actions, from);
	if (err || from < 0 || from <= last)
		return from < 0 ? EBADF : err;
	return HOST(posix_spawn_file_actions_addclosefrom_np)(actions, from);
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
