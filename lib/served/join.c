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
#include "host/sys.h"
#include "region/fdmap.h"

#include <errno.h>
#include <string.h>

/* The marks of an exec, which lie in the ring. 0, or -errno with the sentence. */
static int copy_marks(const struct guise_join_reply *r, struct guise_served *v)
{
	const size_t bytes = r->marks * sizeof(struct guise_mark);
	void *marks;

	if (!r->marks || r->marks > GUISE_RING_MARKS)
		return 0;
	marks = guise_pages(bytes);
	if (!marks)
		return guise_fail(ENOMEM, "join: out of memory");
	memcpy(marks, guise_ring_room(v->ring, 0), bytes);
	v->place.marks = (uint64_t)marks;
	v->place.marks_n = r->marks;
	return 0;
}

/* The ring and the bells of an answer; NULL with the sentence. The bells it had are closed. */
static struct guise_served *take_ring(struct guise_stack *s, const struct guise_join_reply *r,
				      const int *fd)
{
	struct guise_served *v;

	if (r->served != GUISE_JOIN_RING) {
		guise_fd_close_all(fd, r->fds);
		guise_fail(EPROTO, "join: no ring");
		return NULL;
	}
	v = guise_served_open(fd[0]);
	if (!v) {
		guise_fd_close_all(fd + 1, GUISE_LANE_BELLS);
		return NULL;
	}
	for (int i = 0; i < GUISE_LANE_BELLS; i++)
		if (s->bell[i] >= 0)
			host_sys(SYS_close, s->bell[i]);
	memcpy(s->bell, fd + 1, GUISE_LANE_BELLS * sizeof(*fd));
	return v;
}

int guise_served_join(struct guise_stack *s, const struct guise_join_reply *r, const int *fd)
{
	s->served = take_ring(s, r, fd);
	if (!s->served)
		return -EPROTO;
	s->served->sandboxed = guise_served_filtered();
	return copy_marks(r, s->served);
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
		if ((size_t)n == GUISE_RING_MARKS)
			return -ENOMEM;
		mark[n++] = (struct guise_mark){ .entry = entry };
	}
	return n;
}

/* Sends a request to the servant with a descriptor (or -1), and gets its answer, which is to be of
 * that kind. 0; or -errno with the sentence. */
static int ask(struct guise_stack *s, const void *q, size_t length, int fd,
	       enum guise_join_served kind, struct guise_join_reply *r, struct guise_message *m)
{
	int err;

	guise_own_lock(GUISE_LOCK_ASK);
	err = guise_join_send(s->control, q, length, fd);
	if (!err)
		err = guise_join_receive(s->control, r, m);
	guise_own_unlock(GUISE_LOCK_ASK);
	if (err || r->served == kind)
		return err;
	guise_message_close(m);
	return guise_fail(EPROTO, "join: an answer of kind %u; expected %u", r->served,
			  (unsigned int)kind);
}

/* As guise_served_prepare(); of: without marks, what all sockets are for. */
static int prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
		   const struct guise_mark *marks, unsigned int n, int keep,
		   enum guise_join_place_of of)
{
	struct guise_join_place q = { .request = guise_join_request(GUISE_JOIN_HEIR),
				      .keep = keep };
	struct guise_mark *room = (void *)guise_served_room(s, &q.lane);
	struct guise_join_reply r;
	struct guise_message m;
	int err;

	if (s->served->lost)
		return guise_fail(ENETDOWN, "its servant is gone");
	if (!room || n > GUISE_RING_MARKS)
		return guise_fail(ENOMEM, "no room for what the next process is to have");
	if (n) {
		memcpy(room, marks, n * sizeof(*marks));
		q.marks = n;
	} else {
		long all = mark_all(s->served, room);

		if (all < 0)
			return guise_fail(ENOMEM, "more than %lu sockets", GUISE_RING_MARKS);
		q.marks = (uint32_t)all;
		q.of = of;
	}
	err = ask(s, &q, sizeof(q), ticket, GUISE_JOIN_PLACE, &r, &m);
	if (err)
		return err;
	heir->proc = 0;
	heir->end = guise_fd_high(m.fd[0]);
	return 0;
}

int guise_served_prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
			 const struct guise_mark *marks, unsigned int n, int keep)
{
	return prepare(s, ticket, heir, marks, n, keep, GUISE_PLACE_FORK);
}

struct guise_stack *guise_served_rise(struct guise_stack *s, int ticket)
{
	struct guise_heir heir = { .end = -1 };
	struct guise_stack *member;
	int err = prepare(s, ticket, &heir, NULL, 0, -1, GUISE_PLACE_SELF);

	if (err)
		return NULL;
	member = guise_join_enter(heir.end, GUISE_JOIN_RISE, &err);
	if (!member || !member->served)
		return member;
	guise_stack_free(member);
	return NULL;
}

long guise_served_pass(struct guise_stack *s, enum guise_join_kind kind, int what, int placeholder)
{
	const struct guise_join_place q = { .request = guise_join_request(kind), .keep = what };
	struct guise_join_reply r;
	struct guise_message m;
	int err = ask(s, &q, sizeof(q), placeholder, GUISE_JOIN_DONE, &r, &m);

	return err ? err : r.result;
}

long guise_served_identify(struct guise_stack *s)
{
	const struct guise_join_request q = guise_join_request(GUISE_JOIN_IDENTIFY);
	struct guise_join_reply r;
	struct guise_message m;
	int err = ask(s, &q, sizeof(q), -1, GUISE_JOIN_DONE, &r, &m);

	return err ? err : r.result;
}

long guise_served_map(struct guise_stack *s, int what, int *number)
{
	const struct guise_join_place q = { .request = guise_join_request(GUISE_JOIN_MAP),
					    .keep = what };
	struct guise_join_reply r;
	struct guise_message m;
	int err = ask(s, &q, sizeof(q), -1, GUISE_JOIN_MEMORY, &r, &m);

	*number = r.result;
	return err ? err : m.fd[0];
}

void guise_served_unmap(struct guise_stack *s, int number)
{
	guise_served_pass(s, GUISE_JOIN_UNMAP, number, -1);
}

void guise_served_become(struct guise_stack *s, struct guise_heir *heir)
{
	struct guise_served *old = s->served, *new = NULL;
	struct guise_join_reply r;
	struct guise_message m;

	s->known = s->threads_ending = 0; /* the parent's threads are not here */
	if (!guise_join_arrive(heir->end, GUISE_JOIN_ENTER, &r, &m)) {
		guise_fd_all_high(m.fd, m.fds);
		new = take_ring(s, &r, m.fd);
	}
	/* The parent's channel goes in any case: its servant is not to wait for this process. */
	host_sys(SYS_close, s->control);
	s->control = heir->end;
	heir->end = -1;
	if (!new) { /* the servant is gone: each call says so */
		__atomic_store_n(&old->lost, true, __ATOMIC_RELEASE);
		return;
	}
	new->place = old->place;
	new->sandboxed = old->sandboxed;
	s->served = new;
	guise_served_close(old);
}
