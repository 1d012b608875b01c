// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a member asks of the holder: words of the region and futexes, so that it takes
 * no descriptor, which a program could close, and no system call except futex(2).
 *
 * The holder has a thread that sleeps on region->ask; bits in it say what for. A
 * request stands in the asking process's entry of region->procs, one at a time. A vfork child,
 * which has none, asks nothing.
 */
#include "region/ask.h"

#include "host/locks.h"
#include "host/sys.h"
#include "region/vcpu.h"
#include "region/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define ASK_END     1u
#define ASK_PROCESS 2u

#define PATIENCE_NS 2000000000ull /* a holder that is stopped must not hang us */
#define LOOK_NS     1000000ull

static void ring(struct guise_region *r, uint32_t what)
{
	__atomic_or_fetch(&r->ask, what, __ATOMIC_SEQ_CST);
	guise_futex_wake(&r->ask, 1);
}

void guise_ask_later(struct guise_stack *s, enum guise_ask what, int32_t about)
{
	struct guise_proc *self = &s->region->procs[s->proc];

	self->ask_about = about;
	self->ask_answer = -ETIMEDOUT;
	__atomic_store_n(&self->ask, what, __ATOMIC_RELEASE);
	ring(s->region, ASK_PROCESS);
}

enum guise_ask guise_asked(const struct guise_stack *s)
{
	return __atomic_load_n(&s->region->procs[s->proc].ask, __ATOMIC_ACQUIRE);
}

bool guise_answered(struct guise_stack *s)
{
	if (guise_asked(s) != GUISE_ASK_ANSWERED)
		return false;
	__atomic_store_n(&s->region->procs[s->proc].ask, GUISE_ASK_NOTHING, __ATOMIC_RELEASE);
	return true;
}

int guise_ask(struct guise_stack *s, enum guise_ask what, pid_t pid)
{
	struct guise_proc *self;
	uint64_t until;
	uint32_t now;
	int answer;

	if (s->served) /* nobody traces it */
		return -ESRCH;
	self = &s->region->procs[s->proc];

	guise_own_lock(GUISE_LOCK_ASK);
	guise_ask_later(s, what, pid);
	until = guise_host_now() + PATIENCE_NS;
	while ((now = guise_asked(s)) != GUISE_ASK_ANSWERED && guise_host_now() < until)
		guise_futex_wait(&self->ask, now, LOOK_NS);
	answer = self->ask_answer;
	__atomic_store_n(&self->ask, GUISE_ASK_NOTHING, __ATOMIC_RELEASE);
	guise_own_unlock(GUISE_LOCK_ASK);
	return answer;
}

static bool allow(const struct guise_stack *s)
{
	return !host_sys(SYS_prctl, PR_SET_PTRACER, s->tracer, 0, 0, 0);
}

void guise_allow_tracer(struct guise_stack *s)
{
	/*
	 * Without Yama the host's kernel does not know this prctl, and it is not needed. With Yama
	 * a process keeps what it allowed when it executes a program, and so may be traced before
	 * it gets here. Its children do not inherit that.
	 */
	s->tracer_allowed = allow(s);
	if (s->tracer_allowed && s->region->procs[s->proc].untraced)
		guise_ask(s, GUISE_ASK_TRACE, 0);
}

void guise_allow_tracer_forked(struct guise_stack *s)
{
	if (s->tracer_allowed)
		allow(s);
}

/* ---- the holder's side -------------------------------------------------------------- */

struct answers {
	struct guise_stack *s;
	guise_answerer *handle;
	void *context;
};

static void answer_all(const struct answers *a)
{
	for (unsigned int i = 2; i < GUISE_MAX_PROCS; i++) {
		struct guise_proc *p = &a->s->region->procs[i];
		uint32_t what = __atomic_load_n(&p->ask, __ATOMIC_ACQUIRE);

		if (!p->used || (what != GUISE_ASK_TRACE && what != GUISE_ASK_LET_GO &&
				 what != GUISE_ASK_BELLS && what != GUISE_ASK_LINKS &&
				 what != GUISE_ASK_IDENTITY))
			continue;
		p->ask_answer = a->handle(a->context, what, i, p->ask_about);
		/* Unless the process that asked no longer waits. */
		__atomic_compare_exchange_n(&p->ask, &what, GUISE_ASK_ANSWERED, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		guise_futex_wake(&p->ask, 1);
		/* It did not wait for the answer, and may be asleep. */
		if (what == GUISE_ASK_LINKS)
			guise_wait_look(a->s, i);
	}
}

static void *answer(void *arg)
{
	struct answers a = *(struct answers *)arg;
	uint32_t what;
	sigset_t all;

	free(arg);
	sigfillset(&all);
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	do {
		guise_futex_wait(&a.s->region->ask, 0, ~0ull);
		what = __atomic_exchange_n(&a.s->region->ask, 0, __ATOMIC_SEQ_CST);
		if (what & ASK_PROCESS)
			answer_all(&a);
	} while (!(what & ASK_END));
	return NULL;
}

int guise_answers_start(struct guise_stack *s, pthread_t *thread, guise_answerer *handle,
			void *context)
{
	struct answers *a = malloc(sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	*a = (struct answers){ s, handle, context };
	err = pthread_create(thread, NULL, answer, a);
	if (err)
		free(a);
	return -err;
}

void guise_answers_stop(struct guise_stack *s, pthread_t thread)
{
	ring(s->region, ASK_END);
	pthread_join(thread, NULL);
}
