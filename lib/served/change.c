// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a member that gives up rights gives up the region with them, and goes on served, with its
 * sockets.
 *
 *	1	the gate is closed (region/gate.c): no thread of the process is inside
 *	2	a place is prepared in the stack, as for a child: with copies of the sockets
 *	3	on its end the process asks to be served; a servant takes the place, and answers
 *		with a ring
 *	4	the table of descriptors, which lies in the region, is copied; the copy and empty
 *		memory take the place of the region in one step (mremap(2)). So the table stays
 *		where other threads look at it, and a thread that still reads elsewhere reads zeros
 *	5	all descriptors of the stack are closed, and the gate is opened. The holder sees the
 *		process leave its former place
 *
 * Steps 4 and 5 are taken whatever becomes of 2 and 3: rights count more than sockets. Without a
 * servant all calls give ENETDOWN from then on.
 *
 * Limits: see gate.c. The process has no region any more, even if it gets its rights back; the
 * next program of it may have one.
 */
#include "served/client.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/memory.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/fdmap.h"
#include "region/gate.h"
#include "region/slot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* The same part of the memory that is to take the region's place. */
static void *other(const struct guise_region *r, uint64_t memory, const void *at)
{
	return (void *)((uintptr_t)at - r->base + memory);
}

/* Memory of the region's size, with a copy of the table, which holds the copy's later addresses. */
static long copy_table(const struct guise_region *r, const struct guise_fdmap *map)
{
	long at = host_sys(SYS_mmap, 0, r->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct guise_region *head;

	if (at < 0)
		return at;
	head = other(r, (uint64_t)at, r);
	head->base = r->base; /* to be unmapped by */
	head->size = r->size;
	if (!map)
		return at;
	memcpy(other(r, (uint64_t)at, map), map, sizeof(*map));
	for (unsigned int i = 0; i < GUISE_FDMAP_CHUNK; i++)
		if (map->chunk[i])
			memcpy(other(r, (uint64_t)at, map->chunk[i]), map->chunk[i],
			       sizeof(*map->chunk[i]));
	return at;
}

/* The region is mapped no more. 0; or -errno, and the table is gone, too. */
static int leave_region(struct guise_stack *s, const struct guise_fdmap *map)
{
	const uint64_t base = s->region->base, size = s->region->size;
	long at = copy_table(s->region, map);

	if (at >= 0 &&
	    host_sys(SYS_mremap, at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, base) >= 0)
		return 0;
	if (at >= 0)
		host_sys(SYS_munmap, at, size);
	host_sys(SYS_munmap, base, size);
	s->region = NULL;
	return guise_fail(ENOMEM, "no memory for the table of its sockets");
}

/* Asks for a servant, with copies of the sockets: 0, or -errno with the sentence. */
static int ask(struct guise_stack *s, int ticket, int keep, int *channel,
	       struct guise_join_reply *r, struct guise_message *m)
{
	struct guise_heir heir = { .end = -1 };
	int err = guise_heir_prepare(s, ticket, &heir, NULL, 0, keep);

	if (err)
		return err;
	err = guise_join_arrive(heir.end, GUISE_JOIN_SERVE, r, m);
	if (err) {
		guise_heir_drop(&heir);
		return err;
	}
	*channel = guise_fd_high(heir.end);
	guise_fd_all_high(m->fd, m->fds);
	return 0;
}

int guise_give_up(struct guise_stack *s, int ticket, int keep)
{
	struct guise_message m = { .fds = 0 };
	struct guise_proc place;
	struct guise_join_reply r;
	struct rlimit limit;
	int err, left, channel = -1;

	if (s->served || s->creator)
		return 0;
	guise_slot(s); /* it takes locks; without one the request for a place fails */
	guise_own_fork_prepare();
	if (s->served) { /* by another thread meanwhile */
		guise_own_fork_parent();
		return 0;
	}
	guise_gate_close(s);
	limit = guise_fd_raise();
	err = ask(s, ticket, keep, &channel, &r, &m);
	place = *guise_own_place(s);
	guise_slot_forget(s);
	guise_stacks_remove(s);
	guise_stack_close(s);
	left = leave_region(s, (const void *)(uintptr_t)place.fdmap);
	s->control = channel;
	if (!err)
		err = guise_served_join(s, &r, m.fd);
	if (err)
		guise_served_lose(s);
	guise_fd_restore(limit);
	place.marks = 0;
	if (left)
		place.fdmap = 0;
	s->served->place = place;
	guise_gate_open(s, GUISE_SERVED);
	guise_own_fork_parent();
	return err ? err : left;
}
