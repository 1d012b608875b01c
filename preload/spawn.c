// SPDX-License-Identifier: GPL-2.0-only
/*
 * posix_spawn's file actions. The child executes them inside libc, past every
 * hook; what it must not close is the ticket (start.c), or the program that it
 * becomes could not join the stack. guise's other descriptors are closed by
 * exec in any case.
 */
#include "preload.h"

#include <limits.h>
#include <spawn.h>

HOOK int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *actions, int fd)
{
	if (fd >= 0 && fd == preload.ticket)
		return 0;
	return HOST(posix_spawn_file_actions_addclose)(actions, fd);
}

HOOK int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
	int err = 0;

	if (from >= 0 && from <= preload.ticket) {
		while (!err && from < preload.ticket)
			err = HOST(posix_spawn_file_actions_addclose)(actions, from++);
		from = preload.ticket + 1;
	}
	return err ? err : HOST(posix_spawn_file_actions_addclosefrom_np)(actions, from);
}
