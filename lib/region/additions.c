// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process gets bells and links that the stack got after it had joined. bell.c says what
 * bells are.
 *
 * Promises of bells: a process that lacks some gets them when one of its threads next goes to
 * sleep. It lacks them if that thread has to share a bell, or if one of its threads had to ring
 * one of the first for one that it has not got. So a process has as many descriptors as threads of
 * its stack sleep at the same time, or up to twice as many; and one that has nothing to do with
 * them has few.
 *
 * Promises of links: a process whose descriptors are not those of the stack's links (links_seen is
 * not region->links_now) gets all that there are when one of its threads next goes to sleep. Until
 * then it does not lead: it could not watch all devices. The pump, which has them all, leads. A
 * frame that it is to send on a link that it has not got waits as if there were no room, and is
 * sent by the leader; of a descriptor it is known by the link's generation which link it belongs
 * to. So no frame goes to a wrong device, and none is lost because a process is behind.
 *
 * The process says in its request (ask.c) what it lacks, and does not wait for the answer: where
 * many processes ask at once the holder needs a while. The holder's answering thread makes more
 * bells, if that is all there are, and sends what is missing over the process's channel: a struct
 * guise_addition, and the descriptors as SCM_RIGHTS. The request is answered after that. The
 * process finds both when one of its threads next goes to sleep and lacks something; for links the
 * holder wakes those that sleep, when the links change and when it has answered. Links that have
 * come are put in place by the next thread that has the virtual CPU and is about to wait: so no
 * other thread of the process is moving a frame on what is closed then.
 *
 * Limits: until then its threads sleep on the bells that it has, and it wakes others by the first
 * ones, which all have. So does a process that gets no descriptors, because it has as many as it
 * may have; it asks again PAUSE_NS later. Another request of the process may take the place of
 * this one. Then it is made again, and of what comes twice one is closed. A vfork child gets none:
 * its descriptors are its own, and the list of them is its parent's. A process whose threads have
 * tables of descriptors of their own (unshare(CLONE_FILES)) gets none from then on; after a change
 * of the links it never leads again. A process of which no thread waits in the stack keeps the
 * descriptors of a link that is gone until one does.
 */
#include "region/additions.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/bell.h"
#include "region/serve.h"
#include "region/vcpu.h"

#include <errno.h>
#include <string.h>

_Static_assert(GUISE_BELLS <= GUISE_MESSAGE_FDS, "one message carries them");
_Static_assert(GUISE_MAX_LINKS *GUISE_LINK_FDS <= GUISE_MESSAGE_FDS, "one message carries them");

#define PAUSE_NS 1000000000ull
#define NEVER    (~0ull)

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (fd[i] >= 0)
			host_sys(SYS_close, fd[i]);
}

/* ---- what comes ------------------------------------------------------------------------- */

/* Adds the bells of a message, if it is one that goes on where the process is, as far as they stand
 * at low or above. */
static void keep_bells(struct guise_stack *s, bool proper, int *fd, unsigned int n, int low)
{
	const unsigned int have = s->bells;
	unsigned int kept = 0;

	if (proper && n <= GUISE_BELLS - have) {
		guise_fd_all_high(fd, n);
		/* One that has found no room up there stands where the program may close it. */
		while (kept < n && fd[kept] >= low)
			kept++;
	}
	close_all(fd + kept, n - kept);
	memcpy(&s->bell[have], fd, kept * sizeof(*fd));
	__atomic_store_n(&s->bells, have + kept, __ATOMIC_RELEASE);
}

/* Whether the numbers of descriptors in the message are those of a holder's. */
static bool is_of_links(const struct guise_addition *a, unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		if (a->fds[i] > GUISE_LINK_FDS || !a->generation[i] != !a->fds[i])
			return false;
		sum += a->fds[i];
	}
	return sum == n;
}

static void keep_links(struct guise_stack *s, const struct guise_addition *a, int *fd,
		       unsigned int n, int low)
{
	struct guise_arrival *arrival = &s->arrival;
	bool room = true;

	if (__atomic_load_n(&arrival->full, __ATOMIC_ACQUIRE) || !is_of_links(a, n)) {
		close_all(fd, n);
		return;
	}
	guise_fd_all_high(fd, n);
	for (unsigned int i = 0; i < n; i++)
		room = room && fd[i] >= low;
	if (!room) {
		close_all(fd, n);
		return;
	}
	arrival->now = a->first;
	memcpy(arrival->generation, a->generation, sizeof(arrival->generation));
	memset(arrival->fd, -1, sizeof(arrival->fd));
	for (unsigned int i = 0, k = 0; i < GUISE_MAX_LINKS; i++)
		for (unsigned int j = 0; j < a->fds[i]; j++)
			arrival->fd[i][j] = fd[k++];
	__atomic_store_n(&arrival->full, true, __ATOMIC_RELEASE);
}

/* Reads one message. False if there is none. */
static bool receive(struct guise_stack *s, int low)
{
	struct guise_addition a = { 0 };
	struct guise_message m;
	long len = guise_message_receive(s->control, &a, sizeof(a), &m);

	/* Zero bytes and nothing with them: the end, not an empty message. */
	if (len < 0 || (!len && !m.fds))
		return false;
	if (len == sizeof(a) && a.what == GUISE_ASK_LINKS)
		keep_links(s, &a, m.fd, m.fds, low);
	else
		keep_bells(s, len == sizeof(a) && a.what == GUISE_ASK_BELLS && a.first == s->bells,
			   m.fd, m.fds, low);
	return true;
}

/* Where this process made the stack. */
static void make(struct guise_stack *s)
{
	unsigned int n = 2 * s->bells < GUISE_BELLS ? 2 * s->bells : GUISE_BELLS;

	if (n > s->region->bells_most)
		n = s->region->bells_most;
	/* Without descriptors for more there will be none. */
	if (guise_bells_make(s, n))
		s->region->bells_most = s->bells;
}

/* Takes what has come. */
static void collect(struct guise_stack *s)
{
	struct rlimit limit = guise_fd_raise();
	const int low = guise_fd_low(limit.rlim_max);
	const unsigned int had = s->bells;
	const bool full = s->arrival.full;

	while (receive(s, low))
		;
	if (s->bells == had && s->arrival.full == full)
		s->additions_next = guise_host_now() + PAUSE_NS;
	guise_fd_restore(limit);
}

/* Links first: without them it cannot lead. Those that have come are to be put in place. */
static void ask(struct guise_stack *s, bool bells)
{
	if (guise_links_stale(s) && !s->arrival.full)
		guise_ask_later(s, GUISE_ASK_LINKS, 0);
	else if (bells)
		guise_ask_later(s, GUISE_ASK_BELLS, (int32_t)s->bells);
}

void guise_additions_get(struct guise_stack *s, const struct guise_slot *slot, bool bells)
{
	const enum guise_ask asked = guise_asked(s);

	if (s->holder_gone || asked == GUISE_ASK_BELLS || asked == GUISE_ASK_LINKS ||
	    (s->additions_next && guise_host_now() < s->additions_next) ||
	    host_sys(SYS_gettid) != slot->tid)
		return;
	guise_own_lock(GUISE_LOCK_ASK);
	if (s->creator) {
		s->bells_missed = false;
		make(s);
	} else if (s->additions_next != NEVER && guise_answered(s)) {
		s->bells_missed = false;
		collect(s);
	} else if (s->additions_next != NEVER) {
		ask(s, bells);
	}
	guise_own_unlock(GUISE_LOCK_ASK);
}

void guise_additions_stay(struct guise_stack *s)
{
	guise_own_lock(GUISE_LOCK_ASK);
	s->additions_next = NEVER;
	guise_own_unlock(GUISE_LOCK_ASK);
}

/* ---- links, in their places -------------------------------------------------------------- */

static void retire(struct guise_link_port *port)
{
	struct guise_link_port old = *port;

	/* Removed first and then closed: another thread may get the same number at once. */
	__atomic_store_n(&port->backend, NULL, __ATOMIC_RELEASE);
	memset(port->fd, -1, sizeof(port->fd));
	port->generation = 0;
	if (old.backend)
		old.backend->detach(&old);
	close_all(old.fd, GUISE_LINK_FDS);
}

static void place(struct guise_stack *s, unsigned int i, const int *fd, uint32_t generation)
{
	struct guise_link *link = &s->region->links[i];
	struct guise_link_port port = { .generation = generation };
	const struct guise_link_kind *kind = guise_link_kind(link->kind);

	memcpy(port.fd, fd, sizeof(port.fd));
	if (link->generation != generation || !kind || kind->backend->attach(s, link, &port)) {
		close_all(port.fd, GUISE_LINK_FDS);
		return;
	}
	s->port[i] = port;
	__atomic_store_n(&s->port[i].backend, kind->backend, __ATOMIC_RELEASE);
}

void guise_additions_place(struct guise_stack *s)
{
	struct guise_arrival *arrival = &s->arrival;

	if (!__atomic_load_n(&arrival->full, __ATOMIC_ACQUIRE))
		return;
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		const uint32_t generation = arrival->generation[i];

		if (generation && s->port[i].generation == generation) {
			close_all(arrival->fd[i], GUISE_LINK_FDS);
			continue;
		}
		retire(&s->port[i]);
		if (generation)
			place(s, i, arrival->fd[i], generation);
	}
	s->links_seen = arrival->now;
	__atomic_store_n(&arrival->full, false, __ATOMIC_RELEASE);
}

void guise_additions_close(struct guise_stack *s)
{
	if (!s->arrival.full)
		return;
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++)
		close_all(s->arrival.fd[i], GUISE_LINK_FDS);
	s->arrival.full = false;
}

/* ---- the holder's side -------------------------------------------------------------------- */

static int give(struct guise_server *v, unsigned int proc, const struct guise_addition *a,
		const int *fd, unsigned int n)
{
	return v->control[proc] < 0 ? 0
				    : guise_message_send(v->control[proc], a, sizeof(*a), fd, n);
}

int guise_bells_give(struct guise_server *v, unsigned int proc, unsigned int first)
{
	const struct guise_addition a = { .what = GUISE_ASK_BELLS, .first = first };
	struct guise_stack *s = v->s;
	unsigned int n;
	int ret = 0;

	/* Also against the end of the channel, which another thread closes. */
	guise_own_lock(GUISE_LOCK_ASK);
	if (first >= s->bells)
		make(s);
	n = first < s->bells ? s->bells - first : 0;
	if (n)
		ret = give(v, proc, &a, &s->bell[first], n);
	guise_own_unlock(GUISE_LOCK_ASK);
	return ret;
}

int guise_links_give(struct guise_server *v, unsigned int proc)
{
	struct guise_addition a = { .what = GUISE_ASK_LINKS };
	int fd[GUISE_MAX_LINKS * GUISE_LINK_FDS], ret;
	struct guise_stack *s = v->s;
	unsigned int n = 0;

	/* Also against links that another thread adds or removes; link.c. */
	guise_own_lock(GUISE_LOCK_ASK);
	a.first = s->region->links_now;
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		if (!guise_link_port(s, i))
			continue;
		a.generation[i] = s->port[i].generation;
		while (a.fds[i] < GUISE_LINK_FDS && s->port[i].fd[a.fds[i]] >= 0)
			fd[n++] = s->port[i].fd[a.fds[i]++];
	}
	ret = give(v, proc, &a, fd, n);
	guise_own_unlock(GUISE_LOCK_ASK);
	return ret;
}
