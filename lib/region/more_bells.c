// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process gets bells that were made after it had joined. bell.c says what they are.
 *
 * Promises: a process that lacks bells gets them when one of its threads next goes to sleep. It
 * lacks them if that thread has to share a bell, or if one of its threads had to ring one of the
 * first for one that it has not got. So a process has as many descriptors as threads of its stack
 * sleep at the same time, or up to twice as many; and one that has nothing to do with them has few.
 *
 * The process says in its request (ask.c) how many it has. The holder's answering thread makes
 * more, if that is all there are, and sends those that are missing over the process's channel:
 * the number of the first in the message, the rest as SCM_RIGHTS. The request is answered after
 * that, so the process finds the message there.
 *
 * Limits: a process that gets no answer, because the holder is stopped, or no descriptors,
 * because it has as many as it may have, tries again PAUSE_NS later. Meanwhile its threads sleep
 * on the bells that it has, and it wakes others by the first ones, which all have. A message for a
 * request that was given up stays in the channel. It is read before the next request, and what the
 * process has already is closed. A vfork child gets none: its descriptors are its own, and the list
 * of them is its parent's. A process whose threads have tables of descriptors of their own
 * (unshare(CLONE_FILES)) gets none from then on.
 */
#include "region/more_bells.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/bell.h"
#include "region/serve.h"
#include "region/vcpu.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_NS 10000000ull
#define PAUSE_NS    1000000000ull
#define NEVER       (~0ull)

/* A message with bells, on either side. */
struct parcel {
	uint32_t first; /* bell's number; the others follow it */
	struct iovec iov;
	struct msghdr m;
	char control[CMSG_SPACE(GUISE_BELLS * sizeof(int))] __attribute__((aligned(16)));
};

static void begin(struct parcel *p)
{
	p->iov = (struct iovec){ &p->first, sizeof(p->first) };
	p->m = (struct msghdr){
		.msg_iov = &p->iov,
		.msg_iovlen = 1,
		.msg_control = p->control,
		.msg_controllen = sizeof(p->control),
	};
}

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
	int fd[GUISE_BELLS];
	unsigned int n = 0;
	struct parcel p;
	struct cmsghdr *c;
	long len;

	begin(&p);
	len = host_sys(SYS_recvmsg, s->control, &p.m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len <= 0)
		return false;
	for (c = CMSG_FIRSTHDR(&p.m); c; c = CMSG_NXTHDR(&p.m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fd, CMSG_DATA(c), n * sizeof(int));
	}
	keep(s, len == sizeof(p.first) && !(p.m.msg_flags & MSG_TRUNC) && p.first == s->bells, fd,
	     n, low);
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

static bool holder_is_gone(const struct guise_stack *s)
{
	struct pollfd p = { .fd = __atomic_load_n(&s->alive, __ATOMIC_RELAXED) };
	struct timespec now = { 0 };

	return p.fd < 0 || host_sys(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

static void get(struct guise_stack *s)
{
	struct rlimit limit = guise_fd_raise();
	const int low = guise_fd_low(limit.rlim_max);
	const unsigned int had = s->bells;

	while (receive(s, low))
		;
	if (s->bells == had && !holder_is_gone(s)) {
		guise_ask_locked(s, GUISE_ASK_BELLS, (int32_t)had, PATIENCE_NS);
		while (receive(s, low))
			;
	}
	if (s->bells == had)
		s->bells_next = guise_host_now() + PAUSE_NS;
	guise_fd_restore(limit);
}

void guise_bells_get(struct guise_stack *s, const struct guise_slot *slot)
{
	if (s->sandboxed || s->holder_gone || (s->bells_next && guise_host_now() < s->bells_next) ||
	    host_sys(SYS_gettid) != slot->tid)
		return;
	guise_own_lock(GUISE_LOCK_ASK);
	s->bells_missed = false;
	if (s->creator)
		make(s);
	else if (s->bells_next != NEVER)
		get(s);
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
	struct cmsghdr *c;
	struct parcel p;
	unsigned int n;
	long ret = 0;

	/* Also against the end of the channel, which another thread closes. */
	guise_own_lock(GUISE_LOCK_ASK);
	if (first >= s->bells)
		make(s);
	n = first < s->bells ? s->bells - first : 0;
	if (n && v->control[proc] >= 0) {
		begin(&p);
		p.first = first;
		memset(p.control, 0, sizeof(p.control));
		p.m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&p.m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), &s->bell[first], n * sizeof(int));
		ret = host_sys(SYS_sendmsg, v->control[proc], &p.m, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	guise_own_unlock(GUISE_LOCK_ASK);
	return ret < 0 ? (int)ret : 0;
}
