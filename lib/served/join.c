// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a program that is served joins, and how its children and the next programs get its sockets.
 *
 * The channel of a served program leads to its servant. For a fork or an exec the program asks it
 * for a place (region/heir.h); the servant forks a servant for that place, which has copies of
 * the sockets, and answers with the end of a new channel. What the child or the next program
 * inherits is that end. It says on it that it has come, and gets the new servant's ring. If no
 * process comes the last copy of the end is closed, and the new servant ends.
 *
 * The table of descriptors is memory of the program's own, which the child of a fork has copies
 * of. The marks of an exec go through the rings, of the old servant and of the new one.
 */
#include "served/client.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/memory.h"
#include "host/message.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/fdmap.h"
#include "region/slot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define MARKS_MAX (GUISE_LANE_ROOM / sizeof(struct guise_mark))

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		host_sys(SYS_close, fd[i]);
}

/* The marks of an exec, which lie in the ring. 0 or -ENOMEM. */
static int copy_marks(const struct guise_join_reply *r, struct guise_served *v)
{
	const size_t bytes = r->marks * sizeof(struct guise_mark);
	long at;

	if (!r->marks || bytes > GUISE_LANE_ROOM)
		return 0;
	at = host_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (at < 0)
		return (int)at;
	memcpy((void *)at, guise_ring_room(v->ring, 0), bytes);
	v->place.marks = (uint64_t)at;
	v->place.marks_n = r->marks;
	return 0;
}

int guise_served_join(struct guise_stack *s, int control, const struct guise_join_reply *r,
		      const int *fd)
{
	int err = r->served == GUISE_JOIN_RING ? 0 : guise_fail(EPROTO, "join: no ring");

	s->control = s->memfd = s->image_fd = s->alive = s->pump_bell = s->console_fd = -1;
	memset(s->bell, -1, sizeof(s->bell));
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		for (int k = 0; k < GUISE_LINK_FDS; k++)
			s->port[i].fd[k] = -1;
	if (!err) {
		s->served = guise_served_open(fd[0], fd + 1, control);
		err = s->served ? copy_marks(r, s->served) : -ENOMEM;
	}
	if (err) {
		if (s->served)
			guise_served_close(s->served);
		else
			close_all(fd, r->fds);
		s->served = NULL;
		return err;
	}
	guise_fault_handler(&guise_stacks_signals);
	guise_slots_begin();
	if (!guise_stacks())
		guise_slots_forked();
	return 0;
}

/* All that the table has, for a fork: their number, or -ENOMEM. */
static long mark_all(const struct guise_served *v, struct guise_mark *mark)
{
	const struct guise_fdmap *map = (const void *)(uintptr_t)v->place.fdmap;
	long n = 0;
	int fd = -1;

	while (map && (fd = guise_fdmap_next(map, fd + 1)) >= 0) {
		uint32_t entry = guise_fdmap_get(map, fd);

		if (!(entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF)))
			continue;
		if ((size_t)n == MARKS_MAX)
			return -ENOMEM;
		mark[n++] = (struct guise_mark){ .entry = entry };
	}
	return n;
}

int guise_served_prepare(struct guise_served *v, int ticket, struct guise_heir *heir,
			 const struct guise_mark *marks, unsigned int n, int keep)
{
	struct guise_join_place q = { .request = guise_join_request(GUISE_JOIN_HEIR),
				      .keep = keep };
	struct guise_mark *room = (void *)guise_served_room(v, &q.lane);
	struct guise_join_reply r;
	struct guise_message m;
	int err;

	if (!room || n > MARKS_MAX)
		return guise_fail(ENOMEM, "no room for what the next process is to have");
	if (n) {
		memcpy(room, marks, n * sizeof(*marks));
		q.marks = n;
	} else {
		long all = mark_all(v, room);

		if (all < 0)
			return guise_fail(ENOMEM, "more than %lu sockets", MARKS_MAX);
		q.marks = (uint32_t)all;
		q.fork = 1;
	}
	guise_own_lock(GUISE_LOCK_ASK);
	err = guise_join_send(v->channel, &q, sizeof(q), ticket);
	if (!err)
		err = guise_join_receive(v->channel, &r, &m);
	guise_own_unlock(GUISE_LOCK_ASK);
	if (err)
		return err;
	if (r.served != GUISE_JOIN_PLACE) {
		guise_message_close(&m);
		return guise_fail(EPROTO, "join: not the end of a place");
	}
	heir->proc = 0;
	heir->end = guise_fd_high(m.fd[0]);
	return 0;
}

long guise_served_pass(struct guise_served *v, enum guise_join_kind kind, int what, int placeholder)
{
	const struct guise_join_place q = { .request = guise_join_request(kind), .keep = what };
	struct guise_join_reply r;
	struct guise_message m;
	int err;

	guise_own_lock(GUISE_LOCK_ASK);
	err = guise_join_send(v->channel, &q, sizeof(q), placeholder);
	if (!err)
		err = guise_join_receive(v->channel, &r, &m);
	guise_own_unlock(GUISE_LOCK_ASK);
	if (err)
		return err;
	guise_message_close(&m);
	return r.served == GUISE_JOIN_DONE ? r.result : -EPROTO;
}

void guise_served_become(struct guise_stack *s, struct guise_heir *heir)
{
	struct guise_served *old = s->served, *new = NULL;
	struct guise_join_reply r;
	struct guise_message m;

	if (!guise_join_arrive(heir->end, &r, &m)) {
		guise_fd_all_high(m.fd, m.fds);
		new = r.served == GUISE_JOIN_RING ? guise_served_open(m.fd[0], m.fd + 1, heir->end)
						  : NULL;
		if (!new)
			close_all(m.fd, m.fds);
	}
	if (new) {
		new->place = old->place;
		s->served = new;
		guise_served_close(old);
	} else { /* the servant is gone: each call says so */
		host_sys(SYS_close, heir->end);
		host_sys(SYS_close, old->channel); /* or its servant would wait for this process */
		old->channel = -1;
		__atomic_store_n(&old->lost, true, __ATOMIC_RELEASE);
	}
	heir->end = -1;
}
