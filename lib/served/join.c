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
 * of. The marks of an exec go through the servant.
 */
#include "served/client.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/memory.h"
#include "host/message.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/slot.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define MARKS_WAIT_MS 10000

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		host_sys(SYS_close, fd[i]);
}

/* The marks that come in a message of their own. 0 or -errno. */
static int receive_marks(int channel, const struct guise_join_reply *r, struct guise_proc *place)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };
	const struct timespec most = { .tv_sec = MARKS_WAIT_MS / 1000 };
	long at, n;

	if (!r->marks)
		return 0;
	at = host_sys(SYS_mmap, 0, r->marks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (at < 0)
		return (int)at;
	host_sys(SYS_ppoll, &p, 1, &most, NULL, 0);
	n = host_sys(SYS_recvfrom, channel, at, r->marks, MSG_DONTWAIT, NULL, NULL);
	if (n != (long)r->marks) {
		host_sys(SYS_munmap, at, r->marks);
		return n < 0 ? (int)n : -EPROTO;
	}
	place->marks = (uint64_t)at;
	place->marks_n = (uint32_t)(r->marks / sizeof(struct guise_mark));
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
		err = s->served ? receive_marks(control, r, &s->served->place) : -ENOMEM;
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

int guise_served_prepare(struct guise_served *v, int ticket, struct guise_heir *heir,
			 const struct guise_mark *marks, unsigned int n, int keep)
{
	const size_t bytes = n * sizeof(*marks), all = sizeof(struct guise_join_place) + bytes;
	struct guise_join_place *q = guise_room_take(all);
	struct guise_join_reply r;
	struct guise_message m;
	int err;

	if (!q)
		return guise_fail(ENOMEM, "no memory");
	*q = (struct guise_join_place){ guise_join_request(GUISE_JOIN_HEIR), keep, n };
	memcpy(q + 1, marks, bytes);
	guise_own_lock(GUISE_LOCK_ASK);
	err = guise_join_send(v->channel, q, all, ticket);
	if (!err)
		err = guise_join_receive(v->channel, &r, &m);
	guise_own_unlock(GUISE_LOCK_ASK);
	guise_room_give(q, all);
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
		__atomic_store_n(&old->lost, true, __ATOMIC_RELEASE);
	}
	heir->end = -1;
}
