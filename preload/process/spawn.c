// SPDX-License-Identifier: GPL-2.0-only
/*
 * posix_spawn. It is an exec (exec.c) whose child runs inside libc, past every hook, and carries
 * out file actions there. These must not close two descriptors: the ticket (start.c), without
 * which the next program could not join the stack, and the end of its place (passing.c). guise's
 * other descriptors are closed by exec in any case.
 *
 * A socket that an action gives another number passes to the program even if it is
 * close-on-exec: this is noted in the table.
 */
#include "preload/locks.h"
#include "preload/process/exec.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/stack.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/resource.h>

/* ---- file actions ------------------------------------------------------------- */

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

/* ---- the call ----------------------------------------------------------------- */

typedef int spawn_function(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attributes, char *const argv[],
			   char *const envp[]);

/* While locks are held all signals are blocked, and libc would give the child that mask: the one
 * from before is set in the attributes, unless the program has set another one. */
static void keep_mask(posix_spawnattr_t *own, const posix_spawnattr_t *given)
{
	short flags = 0;
	sigset_t mask;

	if (given)
		*own = *given;
	else
		posix_spawnattr_init(own);
	posix_spawnattr_getflags(own, &flags);
	if (flags & POSIX_SPAWN_SETSIGMASK)
		return;
	sigemptyset(&mask);
	*(unsigned long *)&mask = guise_own_mask();
	posix_spawnattr_setsigmask(own, &mask);
	posix_spawnattr_setflags(own, (short)(flags | POSIX_SPAWN_SETSIGMASK));
}

/*
 * The end of a place has the same number in all children, which file actions leave alone. In this
 * process another descriptor has that number, until the end is put there for one child; so one
 * thread spawns at a time.
 */
static int spawn(spawn_function *host, pid_t *pid, const char *name,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const argv[], char *const envp[])
{
	char found[PATH_MAX], loader[PATH_MAX];
	struct guise_heir heir;
	const char *path;
	int ret;

	if (!preload_on_stack() || !*preload_library() || !exec_readable(envp))
		return host(pid, name, actions, attributes, argv, envp);
	path = host == HOST(posix_spawnp) ? preload_find_program(name, found) : name;
	/* A relative one may be another file's, after the actions. */
	if (exec_is_loaded_bare(path, argv, envp, loader) && *path == '/') {
		char *arguments[exec_lines(argv) + 2];

		exec_load_bare(arguments, path, argv);
		return spawn(HOST(posix_spawn), pid, loader, actions, attributes, arguments, envp);
	}
	preload_outside_first();
	preload_look_at_spawned(name, host == HOST(posix_spawnp), !exec_switched_off(envp));
	ret = exec_prepare(&heir, envp, true);
	if (!ret && heir.end >= 0 && preload_spawn_place() < 0)
		ret = -EAGAIN; /* no descriptor that the program could find it by */
	if (ret) {
		guise_heir_drop(&heir);
		preload_outside_not_after_all();
		return -ret;
	}
	{
		char *line[exec_lines(envp) + 5 + EXEC_OTHERS], longer[exec_room(envp)];
		char number[32], where[64];
		bool placed = heir.end >= 0;
		posix_spawnattr_t own;

		if (placed) {
			guise_own_lock(PRELOAD_LOCK_SPAWN);
			guise_fd_onto(heir.end, preload.place, 0);
		}
		if (guise_own_locked()) {
			keep_mask(&own, attributes);
			attributes = &own;
		}
		exec_furnish(line, longer, number, where, envp, placed ? preload.place : -1);
		host_sys(SYS_fcntl, preload.ticket, F_SETFD, 0);
		ret = host(pid, name, actions, attributes, argv, line);
		if (ret)
			preload_outside_not_after_all();
		if (placed) {
			guise_fd_onto(preload.ticket, preload.place, O_CLOEXEC);
			guise_own_unlock(PRELOAD_LOCK_SPAWN);
		}
	}
	guise_heir_drop(&heir);
	return ret;
}

HOOK int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(HOST(posix_spawn), pid, path, actions, attributes, argv, envp);
}

HOOK int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(HOST(posix_spawnp), pid, name, actions, attributes, argv, envp);
}
