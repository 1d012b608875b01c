// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process gets bells that were made after it had joined. bell.c says what they are.
 *
 * Promises: a process that lacks bells gets them when one of its threads next goes to sleep. It
 * lacks them if that thread has to share a bell, or if one of its threads had to ring one of the
 * first for one that it has not got. So a process has as many descriptors as threads of its stack
 * sleep at the same time, or up to twice as many; and one that has nothing to do with them has few.
 *
 * The process says in its request (ask.c) how many it has, and does not wait for the answer: where
 * many processes ask at once the holder needs a while. The holder's answering thread makes more, if
 * that is all there are, and sends those that are missing over the process's channel: the number of
 * the first in the message, the rest as SCM_RIGHTS. The request is answered after that. The process
 * finds both when one of its threads next goes to sleep and lacks a bell.
 *
 * Limits: until then its threads sleep on the bells that it has, and it wakes others by the first
 * ones, which all have. So does a process that gets no descriptors, because it has as many as it
 * may have; it asks again PAUSE_NS later. Another request of the process may take the place of this
 * one. Then it is made again, and of what comes twice one is closed. A vfork child gets none: its
 * descriptors are its own, and the list of them is its parent's. A process whose threads have
 * tables of descriptors of their own (unshare(CLONE_FILES)) gets none from then on.
 */
#include "region/more_bells.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/bell.h"
#include "region/serve.h"
#include "region/vcpu.h"

#include <string.h>

_Static_assert(GUISE_BELLS <= GUISE_MESSAGE_FDS, "one message carries them");

#define PAUSE_NS 1000000000ull
#define NEVER    (~0ull)

/* Adds what a message brought, if it is one that goes on where the process is, as far as it
 * stands at low or above. */
static void keep(struct guise_stack *s, bool proper, int *fd, unsigned int n, int low)
{
	const unsigned int have = s->bells;
	unsigned int kept = 0;

	if (proper && n <= GUISE_BELLS - have) {
		guise_fd_all_high(fd, n);
		/* One that has found no room up there stands where the program may close it. */
		while (kept < n && fd[kept] >= low)
			kept++;
	}
	for (unsigned int i = kept; i < n; i++)
		host_sys(SYS_close, fd[i]);
	memcpy(&s->bell[have], fd, kept * sizeof(*fd));
	__atomic_store_n(&s->bells, have + kept, __ATOMIC_RELEASE);
}

/* Reads one message. False if there is none. */
static bool receive(struct guise_stack *s, int low)
{
	struct guise_message m;
	uint32_t first;
	long len = guise_message_receive(s->control, &first, sizeof(first), &m);

	/* Zero bytes and nothing with them: the end, not an empty message. */
	if (len < 0 || (!len && !m.fds))
		return false;
	keep(s, len == sizeof(first) && first == s->bells, m.fd, m.fds, low);
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

	while (receive(s, low))
		;
	if (s->bells == had)
		s->bells_next = guise_host_now() + PAUSE_NS;
	guise_fd_restore(limit);
}

void guise_bells_get(struct guise_stack *s, const struct guise_slot *slot)
{
	if (s->holder_gone || guise_asked(s) == GUISE_ASK_BELLS ||
	    (s->bells_next && guise_host_now() < s->bells_next) ||
	    host_sys(SYS_gettid) != slot->tid)
		return;
	guise_own_lock(GUISE_LOCK_ASK);
	if (s->creator) {
		s->bells_missed = false;
		make(s);
	} else if (s->bells_next != NEVER && guise_answered(s)) {
		s->bells_missed = false;
		collect(s);
	} else if (s->bells_next != NEVER) {
		guise_ask_later(s, GUISE_ASK_BELLS, (int32_t)s->bells);
	}
	guise_own_unlock(GUISE_LOCK_ASK);
}

void guise_bells_stay(struct guise_stack *s)
{
	guise_own_lock(GUISE_LOCK_ASK);
	s->bells_next = NEVER;
	guise_own_unlock(GUISE_LOCK_ASK);
}

int guise_bells_give(struct guise_server *v, unsigned int proc, unsigned int first)
{
	struct guise_stack *s = v->s;
	const uint32_t number = first;
	unsigned int n;
	int ret = 0;

	/* Also against the end of the channel, which another thread closes. */
	guise_own_lock(GUISE_LOCK_ASK);
	if (first >= s->bells)
		make(s);
	n = first < s->bells ? s->bells - first : 0;
	if (n && v->control[proc] >= 0)
		ret = guise_message_send(v->control[proc], &number, sizeof(number), &s->bell[first],
					 n);
	guise_own_unlock(GUISE_LOCK_ASK);
	return ret;
}
