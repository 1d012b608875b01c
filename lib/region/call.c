// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct system call.
 *
 * The calling thread writes its request into its slot, takes the virtual CPU,
 * and continues the kernel context that is current. Usually that is its own
 * task, parked since its last call, which does the call at once and parks
 * again. Otherwise the kernel's scheduler first makes that task current. If
 * the task falls asleep the kernel parks in its idle task, and the thread
 * waits (wait.c), continuing the kernel whenever there is work, until its
 * request is done.
 *
 * Host signals that arrive meanwhile are held (host/signal.c): they interrupt
 * the task as they would interrupt the host's own call, and their handlers run
 * when the thread has left.
 */
#include "region/call.h"

#include "guise/syscall.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/gate.h"
#include "region/identity.h"
#include "region/slot.h"
#include "region/vcpu.h"
#include "region/wait.h"
#include "served/client.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/*
 * Another thread is about to end the process (leave.c): this one must not be inside
 * when the host's kernel kills it. Gives up the virtual CPU, which it holds, and waits. Takes
 * it again if the process does not end after all (an exec that failed).
 */
static bool await_end(struct guise_stack *s, struct guise_slot *slot)
{
	uint32_t ending;

	guise_unlock(s);
	while ((ending = __atomic_load_n(&s->ending, __ATOMIC_ACQUIRE)) &&
	       ending != (uint32_t)slot->tid)
		guise_futex_wait(&s->ending, ending, ~0ull);
	return guise_lock(s, slot);
}

/*
 * Whether the slot's thread was stopped in this wait and has been continued. To the kernel that
 * is a signal without a handler, which ends some calls. ppoll and pselect6 are not told of it:
 * they would begin anew with the rest of their time, which is not known here; so they sleep on.
 */
static bool was_stopped(const struct guise_slot *slot)
{
	if (__builtin_expect(__atomic_load_n(&slot->still, __ATOMIC_RELAXED) != GUISE_CONTINUED,
			     1) ||
	    slot->op != GUISE_OP_CALL)
		return false;
	return slot->nr != GUISE_NR_ppoll && slot->nr != GUISE_NR_pselect6;
}

/* False when the stack was lost meanwhile. */
static bool run(struct guise_stack *s, struct guise_slot *slot, struct guise_pollset *ps)
{
	struct guise_region *r = s->region;
	bool interrupted = false;

	slot->done = 0;
	slot->run = 1;
	slot->interrupt = 0;
	if (!guise_lock(s, slot))
		return false;
	for (;;) {
		/* Looked at with the virtual CPU held: see leave.c. */
		while (__builtin_expect(s->ending, 0) && s->ending != (uint32_t)slot->tid)
			if (!await_end(s, slot))
				return false;
		s->resume(slot);
		if (__builtin_expect(slot->done, 1))
			break;
		if (!guise_wait(s, slot, interrupted ? NULL : ps))
			return false;
		if (!interrupted && (guise_signals_deferred() || (ps && ps->ready > 0) ||
				     was_stopped(slot) || s->route != GUISE_DIRECT)) {
			slot->interrupt = 1;
			interrupted = true;
		}
		r->vcpu->carrier = slot->id;
	}
	guise_unlock(s);
	return true;
}

/* One system call. */
struct request {
	uint64_t nr, arg[6];
};

static long call_elsewhere(struct guise_stack *s, struct guise_pollset *ps,
			   const struct request *q);

/* It was ended only so that the thread leaves the stack: it is made again, on the other side of
 * the gate. A time that it was to wait begins anew. */
static inline bool was_for_gate(const struct guise_stack *s, const struct guise_outcome *o,
				const struct guise_pollset *ps)
{
	return __builtin_expect(s->route != GUISE_DIRECT, 0) && o->ret == -EINTR &&
	       !guise_signals_deferred() && !(ps && ps->ready > 0);
}

/* Makes the call, inside. */
static inline struct guise_outcome once(struct guise_stack *s, struct guise_slot *slot,
					struct guise_pollset *ps, const struct request *q)
{
	struct guise_outcome o;

	slot->op = GUISE_OP_CALL;
	slot->nr = q->nr;
	slot->arg[0] = q->arg[0];
	slot->arg[1] = q->arg[1];
	slot->arg[2] = q->arg[2];
	slot->arg[3] = q->arg[3];
	slot->arg[4] = q->arg[4];
	slot->arg[5] = q->arg[5];
	if (__builtin_expect(!run(s, slot, ps), 0)) {
		slot->signals = 0;
		return (struct guise_outcome){ .ret = -ENETDOWN };
	}
	o.ret = slot->ret;
	o.restart = slot->restart && o.ret == -EINTR;
	o.signals = slot->signals;
	slot->signals = 0;
	return o;
}

/*
 * Handlers of the program run when guise_inside_leave() is past, and may make
 * calls of their own with the same slot. So outside nothing is kept in it: the
 * request is written and its result read between enter and leave.
 */
static inline long request(struct guise_stack *s, struct guise_slot *slot, struct guise_pollset *ps,
			   const struct request *q)
{
	struct guise_outcome o;
	bool anew;

	do {
		guise_inside_enter();
		if (__builtin_expect(s->route != GUISE_DIRECT && !guise_gate_is_mine(), 0)) {
			guise_inside_leave();
			guise_signals_deliver();
			return call_elsewhere(s, ps, q);
		}
		o = once(s, slot, ps, q);
		guise_inside_leave();
		anew = was_for_gate(s, &o, ps);
	} while (__builtin_expect(guise_call_again(&o, ps) || anew, 0));
	return o.ret;
}

/* By the stack's present route, once it is known. */
static __attribute__((noinline)) long
call_elsewhere(struct guise_stack *s, struct guise_pollset *ps, const struct request *q)
{
	struct guise_slot *slot;
	long err;

	for (;;) {
		if (!guise_slots_seen())
			return guise_slot_error(s);
		guise_gate_pass(s);
		if (s->served)
			return guise_served_call(s, ps, q->nr, q->arg);
		slot = guise_slot(s);
		if (slot)
			return request(s, slot, ps, q);
		err = guise_slot_error(s);
		if (err != -ERESTART)
			return err;
	}
}

struct guise_outcome guise_call_foreign(struct guise_stack *s, const struct guise_foreign_call *f)
{
	struct guise_slot *slot = guise_slot(s);
	struct request q = { .nr = f->nr };
	struct guise_outcome o;

	if (!slot)
		return (struct guise_outcome){ .ret = guise_slot_error(s) };
	memcpy(q.arg, f->arg, sizeof(q.arg));
	guise_inside_enter();
	/* A signal that comes from here on is held, and ends a wait. One that came before, too: the
	 * call is made, and does not wait. */
	if (__atomic_load_n(f->interrupt, __ATOMIC_SEQ_CST) == f->number)
		guise_signal_raise(f->signal);
	slot->window_at = f->window;
	slot->window_from = f->window_from;
	slot->window_size = f->window_size;
	o = once(s, slot, NULL, &q);
	slot->window_size = 0;
	guise_inside_leave();
	guise_signals_deliver();
	return o;
}

long guise_call_attach(struct guise_stack *s, struct guise_slot *slot)
{
	guise_identity(s, slot->arg);
	guise_inside_enter();
	slot->op = GUISE_OP_ATTACH;
	__atomic_add_fetch(&s->region->online, 1, __ATOMIC_RELAXED);
	slot->ret = 0;
	if (!run(s, slot, NULL)) {
		guise_inside_leave();
		return -ENETDOWN;
	}
	guise_inside_leave();
	guise_signals_deliver();
	if (slot->task)
		return 0;
	__atomic_sub_fetch(&s->region->online, 1, __ATOMIC_RELEASE);
	return slot->ret;
}

void guise_call_identify(struct guise_stack *s, struct guise_slot *slot)
{
	struct request q = { .nr = GUISE_NR_IDENTIFY };

	guise_identity(s, q.arg);
	if (q.arg[5])
		request(s, slot, NULL, &q);
}

void guise_call_exit(struct guise_stack *s, struct guise_slot *slot)
{
	guise_inside_enter();
	slot->op = GUISE_OP_EXIT;
	if (run(s, slot, NULL))
		__atomic_sub_fetch(&s->region->online, 1, __ATOMIC_RELEASE);
	guise_inside_leave();
	guise_signals_deliver();
}

static __attribute__((noinline)) long without_slot(struct guise_stack *s, struct guise_pollset *ps,
						   const struct request *q)
{
	long err = guise_slot_error(s);

	return err == -ERESTART ? call_elsewhere(s, ps, q) : err;
}

static inline long call(struct guise_stack *s, struct guise_pollset *ps, long nr, long a, long b,
			long c, long d, long e, long f)
{
	const struct request q = {
		(uint64_t)nr,
		{ (uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d, (uint64_t)e, (uint64_t)f },
	};
	struct guise_slot *slot;

	if (__builtin_expect(s->route != GUISE_DIRECT, 0))
		return call_elsewhere(s, ps, &q);
	slot = guise_slot(s);
	if (__builtin_expect(!slot, 0))
		return without_slot(s, ps, &q);
	return request(s, slot, ps, &q);
}

long guise_call(struct guise_stack *s, long nr, long a, long b, long c, long d, long e, long f)
{
	return call(s, NULL, nr, a, b, c, d, e, f);
}

long guise_call_polling(struct guise_stack *s, struct pollfd *hostfds, unsigned int n,
			int *host_ready, long nr, long a, long b, long c, long d, long e, long f)
{
	struct guise_pollset ps = { hostfds, n, -1 };
	long ret = call(s, &ps, nr, a, b, c, d, e, f);

	*host_ready = ps.ready;
	return ret;
}

void guise_offline(struct guise_stack *s)
{
	if (s->served)
		return;
	__atomic_sub_fetch(&s->region->online, 1, __ATOMIC_SEQ_CST);
}

void guise_online(struct guise_stack *s)
{
	if (s->served)
		return;
	__atomic_add_fetch(&s->region->online, 1, __ATOMIC_SEQ_CST);
}

uint64_t guise_clock(struct guise_stack *s)
{
	uint64_t now;

	guise_inside_enter();
	now = s->route == GUISE_DIRECT ? s->ops->clock(s->ops, 0) : guise_host_now();
	guise_inside_leave();
	guise_signals_deliver();
	return now;
}
