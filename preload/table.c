// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of private descriptors, and the descriptors that epoll.c needs: a
 * socket that is in no epoll, and the nudges. They are made when the
 * process makes its first private socket, as most processes (those of a shell
 * script) never make one. Before that a forked child has its table in memory of its own,
 * not in the region.
 */
#include "preload/preload.h"

#include "host/fd.h"
#include "host/memory.h"
#include "host/sys.h"
#include "preload/locks.h"
#include "region/stack.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

static void *region_get(void *context, size_t bytes)
{
	long address = guise_call(context, GUISE_NR_ALLOC, (long)bytes, 0, 0, 0, 0, 0);

	return (unsigned long)address > -4096UL ? NULL : (void *)address;
}

static void region_put(void *context, void *memory, size_t bytes)
{
	guise_call(context, GUISE_NR_FREE, (long)memory, (long)bytes, 0, 0, 0, 0);
}

static struct guise_fdmap_memory in_region(struct guise_stack *s)
{
	return (struct guise_fdmap_memory){ .get = region_get, .put = region_put, .context = s };
}

static void *local_get(void *context, size_t bytes)
{
	(void)context;
	return guise_pages(bytes);
}

static void local_put(void *context, void *memory, size_t bytes)
{
	(void)context;
	guise_pages_free(memory, bytes);
}

const struct guise_fdmap_memory preload_local = { .get = local_get, .put = local_put };

/*
 * In the region, with what the process knows already (a forked child does). A program that comes
 * by exec finds one there, which the port made with its place (kernel/heir.c).
 */
static int make_map(struct guise_stack *s)
{
	struct guise_fdmap_memory memory = in_region(s);
	struct guise_fdmap *given = (void *)(uintptr_t)guise_own_place(s)->fdmap;
	struct guise_fdmap *map = given ? given : guise_fdmap_new(&memory);
	int fd = -1, err = map ? 0 : -ENOMEM;

	while (!err && (fd = guise_fdmap_next(preload.map, fd + 1)) >= 0)
		err = guise_fdmap_set(map, &memory, fd, guise_fdmap_get(preload.map, fd),
				      guise_fdmap_inode(preload.map, fd));
	if (err) {
		if (map && !given)
			guise_fdmap_free(map, &memory);
		return err;
	}
	guise_own_place(s)->fdmap = (uint64_t)(uintptr_t)map;
	__atomic_store_n(&preload.map, map, __ATOMIC_RELEASE);
	return 0;
}

/* A forked child has inherited them. */
static int make_own(void)
{
	if (preload.placeholder < 0)
		preload.placeholder = guise_fd_high(
			(int)host_sys(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (preload.nudge < 0)
		preload.nudge = guise_fd_high((int)host_sys(SYS_eventfd2, 1, EFD_CLOEXEC));
	return preload.placeholder < 0 ? preload.placeholder
	       : preload.nudge < 0     ? preload.nudge
				       : 0;
}

static int prepare(struct guise_stack *s)
{
	struct rlimit many = { GUISE_FDMAP_MAX, GUISE_FDMAP_MAX };
	int err;

	err = make_own();
	if (!err)
		err = make_map(s);
	if (err)
		return err;
	/* The host's limit counts: every private socket has a number there. */
	guise_call(s, GUISE_NR_prlimit64, 0, RLIMIT_NOFILE, (long)&many, 0, 0, 0);
	preload.stack_nudge = (int)guise_call(s, GUISE_NR_eventfd2, 1, 0, 0, 0, 0, 0);
	preload_own_fds_changed();
	return 0;
}

int preload_prepare(void)
{
	int err = 0;

	if (likely(__atomic_load_n(&preload.prepared, __ATOMIC_ACQUIRE)))
		return 0;
	guise_own_lock(PRELOAD_LOCK_BEGIN);
	if (!preload.prepared)
		err = prepare(preload.stack);
	if (!err)
		__atomic_store_n(&preload.prepared, true, __ATOMIC_RELEASE);
	guise_own_unlock(PRELOAD_LOCK_BEGIN);
	return err;
}

int preload_map_room(int fd)
{
	struct guise_fdmap_memory memory = in_region(preload.stack);
	int err;

	/* A forked child that has not joined: its table is its own. */
	if (!preload.stack)
		return guise_fdmap_room(preload.map, &preload_local, fd);
	err = preload_prepare();
	return err ? err : guise_fdmap_room(preload.map, &memory, fd);
}

int preload_map_set(int fd, uint32_t entry, uint32_t inode)
{
	struct guise_fdmap_memory memory = in_region(preload.stack);
	int err;

	/* The number is the child's of a vfork, and the table its parent's. */
	if (preload_borrowed())
		return -ENFILE;
	err = preload_map_room(fd);
	return err ? err : guise_fdmap_set(preload.map, &memory, fd, entry, inode);
}
