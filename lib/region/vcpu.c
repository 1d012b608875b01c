// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual CPU's lock.
 *
 * Promises: taking it free costs one atomic; nobody who waits is passed over
 * for much longer than GUISE_STARVE_NS for each who waits at that time; processes that
 * do nothing but call have, together, most of what one alone would have; a waiter that
 * dies costs the others nothing but that time.
 *
 * How: a word that holds the owner's slot, and a bit that says somebody sleeps
 * on it. Newcomers may barge in, which is what keeps throughput up: to hand the
 * virtual CPU over costs as much as hundreds of calls, for all that it touches has to
 * come from another processor, and whoever sleeps has to be woken. So who makes call
 * after call is disturbed as little as can be:
 *
 *	spins	looks at the word, for as long as that has been worth it lately
 *	sleeps	on the word; an unlock that finds the bit wakes one
 *	naps	was woken, in vain, and there were many calls meanwhile: to be woken by
 *		that owner again would hold him up. Or it comes too late to sleep, again and
 *		again: he is through before it sleeps, and wakes nobody, which costs him as
 *		much. On a word that nobody changes
 *	starves	when it has waited for its time, which is longer the more wait: it
 *		counts itself in region->vcpu->starving, and the next unlock leaves the word
 *		reserved, for the starving alone (the idea of Go's sync.Mutex). It is
 *		awake just then, and looks; only if that takes long it sleeps, and is
 *		woken before the others. Where nobody takes it all that time, those who
 *		are counted were stopped: who comes to starve meanwhile counts alone
 *
 * So there is a turn of about GUISE_STARVE_NS for each, and no clock is read for it
 * but the waiters' own. An owner who goes away to his program, stops, forks or dies
 * between two calls holds nothing.
 *
 * Unlocking is also where wake-ups that the kernel asked for while it ran
 * become real (see wait.c), and where links write the frames they gathered.
 *
 * Whoever is killed in here, with the virtual CPU or just after it gave it up,
 * leaves nothing that cannot be made anew: the owner's number stands in the word
 * itself, and wake-ups that were lost with him are replaced by one for all
 * (slot->delivering; bury.c).
 *
 * That is the holder's work. Should the holder itself be gone, whoever waits for
 * long looks whether the owner is as well: then it takes the virtual CPU from the
 * dead, or declares the stack lost if the dead was inside. It also does that when the
 * holder is there, but has done nothing about a dead owner for GUISE_SILENCE_NS (it is
 * stopped, say); then the stack is lost in any case, for the holder may come to it yet.
 */
#include "region/vcpu.h"

#include "host/sys.h"
#include "link/link.h"
#include "region/bell.h"
#include "region/process.h"
#include "region/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>

#define GUISE_STARVE_NS     200000ull
#define GUISE_HUNGER_NS     1000000ull    /* how long a starving one sleeps at the most */
#define GUISE_LOOK_NS       10000000ull   /* how often the owner is looked after */
#define GUISE_SILENCE_NS    5000000000ull /* of a holder, after which it is done without */
#define GUISE_MANY_CALLS    16u           /* while one sleeps: not to be disturbed */
#define GUISE_LATE          3u            /* times too late to sleep: the same */
#define GUISE_SPIN_MAX      400u          /* about 10 us of pause instructions */
#define GUISE_SPIN_STARVING 800u
#define GUISE_SPIN_PROBE    16u /* spin once in so many, when it was not worth it */

/* Who sleeps on the word, to the host's kernel (FUTEX_WAKE_BITSET). */
#define WAITING  1u
#define STARVING 2u

uint64_t guise_host_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

long guise_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout)
{
	struct timespec ts, *tsp = NULL;

	if (timeout != ~0ull) {
		ts.tv_sec = (time_t)(timeout / 1000000000ull);
		ts.tv_nsec = (long)(timeout % 1000000000ull);
		tsp = &ts;
	}
	return host_sys(SYS_futex, word, FUTEX_WAIT, value, tsp, 0, 0);
}

/* Until a time of guise_host_now(), or a wake-up for that kind. */
static long futex_wait_until(uint32_t *word, uint32_t value, uint64_t until, uint32_t kind)
{
	const struct timespec ts = { (time_t)(until / 1000000000ull),
				     (long)(until % 1000000000ull) };

	return host_sys(SYS_futex, word, FUTEX_WAIT_BITSET, value, &ts, NULL, kind);
}

void guise_futex_wake(uint32_t *word, int count)
{
	host_sys(SYS_futex, word, FUTEX_WAKE, count, 0, 0, 0);
}

static bool take(struct guise_region *r, uint32_t v, uint32_t mine)
{
	return __atomic_compare_exchange_n(&r->vcpu->lock, &v, mine, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static bool is_free(uint32_t v, bool starving)
{
	return v == 0 || (v == GUISE_LOCK_RESERVED && starving);
}

/* Looks so often; how often it took until the lock was taken, or ~0. */
static unsigned int look(struct guise_region *r, uint32_t mine, bool starving, unsigned int budget)
{
	for (unsigned int i = 0; i < budget; i++) {
		uint32_t v;

		guise_relax();
		v = __atomic_load_n(&r->vcpu->lock, __ATOMIC_RELAXED);
		if (is_free(v, starving) && take(r, v, mine))
			return i;
	}
	return ~0u;
}

static bool spin_for_lock(struct guise_region *r, uint32_t id)
{
	static __thread unsigned int worth = GUISE_SPIN_MAX / 4, skipped;
	unsigned int i, budget = worth * 2 > GUISE_SPIN_MAX ? GUISE_SPIN_MAX : worth * 2;

	if (budget < 8) {
		if (++skipped % GUISE_SPIN_PROBE)
			return false;
		budget = GUISE_SPIN_MAX / 4;
	}
	i = look(r, id, false, budget);
	if (i == ~0u)
		worth /= 2;
	else
		worth += ((int)i - (int)worth) / 8 + 1;
	return i != ~0u;
}

static void less(uint32_t *count)
{
	uint32_t n = __atomic_load_n(count, __ATOMIC_RELAXED);

	/* The holder sets it to 0 when a member dies: do not go below. */
	while (n && !__atomic_compare_exchange_n(count, &n, n - 1, 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
		;
}

static bool holder_gone(struct guise_stack *s)
{
	struct pollfd p = { .fd = s->alive };
	const struct timespec at_once = { 0, 0 };

	if (!s->holder_gone && s->alive > 0 && host_sys(SYS_ppoll, &p, 1, &at_once, NULL, 8) > 0)
		s->holder_gone = true;
	return s->holder_gone;
}

/*
 * The holder's places have process 0 and 1. Of a member it counts that its process
 * has ended, as far as we can tell: we may see other pids than the holder does.
 */
static bool owner_gone(const struct guise_stack *s, const struct guise_slot *owner)
{
	const struct guise_proc *proc = &s->region->procs[owner->proc];
	struct guise_process now;

	if (owner->proc <= 1)
		return s->holder_gone;
	if (!proc->pid || s->region->procs[s->proc].pid != (int)host_sys(SYS_getpid))
		return false;
	if (host_sys(SYS_kill, proc->pid, 0) == -ESRCH)
		return true;
	return proc->start_time && guise_process_read(proc->pid, &now) &&
	       guise_process_over(&now, proc->start_time);
}

/*
 * Waited for long, since then, for the lock, whose word is v: true when it is taken,
 * from a dead one.
 */
static bool inherit(struct guise_stack *s, struct guise_slot *slot, uint32_t v, uint64_t waited)
{
	struct guise_region *r = s->region;
	uint32_t owner = v & ~(GUISE_LOCK_CONTENDED | GUISE_LOCK_RESERVED);
	/* Owned by this very thread's slot: its vfork child used it, and was killed. */
	bool child = owner == slot->id;

	if (!owner || s->sandboxed ||
	    (!child &&
	     ((!holder_gone(s) && waited < GUISE_SILENCE_NS) || !owner_gone(s, &s->slots[owner]))))
		return false;
	/* A holder that is there, but slow, may be about to take it as well. */
	if (__atomic_load_n(&r->vcpu->entered, __ATOMIC_ACQUIRE) || (!child && !s->holder_gone)) {
		if (__atomic_load_n(&r->vcpu->lock, __ATOMIC_ACQUIRE) == v)
			guise_declare_dead(s);
		return false;
	}
	if (!__atomic_compare_exchange_n(&r->vcpu->lock, &v, slot->id | GUISE_LOCK_CONTENDED, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	guise_wait_mend(s);
	return true;
}

/* Sleeps until the lock is given up and this one is woken, or until then. False: it did
 * not come to that. */
static bool sleep_for_lock(struct guise_region *r, uint64_t until, uint32_t kind)
{
	uint32_t v = __atomic_load_n(&r->vcpu->lock, __ATOMIC_RELAXED);

	if (is_free(v, kind == STARVING))
		return false;
	if (v != GUISE_LOCK_RESERVED && !(v & GUISE_LOCK_CONTENDED)) {
		if (!__atomic_compare_exchange_n(&r->vcpu->lock, &v, v | GUISE_LOCK_CONTENDED, 0,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return false;
		v |= GUISE_LOCK_CONTENDED;
	}
	return futex_wait_until(&r->vcpu->lock, v, until, kind) != -EAGAIN;
}

/* The word changed before this thread slept on it, and so it did the last times, while
 * nobody in the stack waited for anything: its owners make call after call. */
static bool again_too_late(const struct guise_region *r)
{
	static __thread unsigned int late;
	static __thread uint64_t waits;
	uint64_t now = __atomic_load_n(&r->waits, __ATOMIC_RELAXED);

	if (waits != now)
		late = 0;
	waits = now;
	return ++late % GUISE_LATE == 0;
}

bool guise_lock_slow(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;
	bool starving = false, in_vain = false, got = false;
	/* Others may sleep: the bit makes our unlock look. */
	const uint32_t mine = slot->id | GUISE_LOCK_CONTENDED;
	uint64_t since, patience, now, looked;
	uint32_t calls = 0; /* when it was first seen reserved, and still is */
	bool reserved = false;

	if (spin_for_lock(r, slot->id))
		return true;
	since = now = looked = guise_host_now();
	patience =
		GUISE_STARVE_NS * (1 + __atomic_fetch_add(&r->vcpu->waiting, 1, __ATOMIC_RELAXED));
	while (!got && !__atomic_load_n(&r->dead, __ATOMIC_RELAXED)) {
		uint32_t v = __atomic_load_n(&r->vcpu->lock, __ATOMIC_RELAXED);

		if (is_free(v, starving)) {
			got = take(r, v, mine);
			continue;
		}
		if (v == GUISE_LOCK_RESERVED && !reserved)
			calls = __atomic_load_n(&r->vcpu->calls, __ATOMIC_RELAXED);
		reserved = v == GUISE_LOCK_RESERVED;
		if (starving) {
			/* Another may have counted anew, without this one. */
			if (!__atomic_load_n(&r->vcpu->starving, __ATOMIC_RELAXED))
				__atomic_add_fetch(&r->vcpu->starving, 1, __ATOMIC_RELAXED);
			sleep_for_lock(r, now + GUISE_HUNGER_NS, STARVING);
		} else if (in_vain) {
			futex_wait_until(&slot->id, slot->id, since + patience, WAITING);
		} else {
			uint32_t before = __atomic_load_n(&r->vcpu->calls, __ATOMIC_RELAXED);

			if (!sleep_for_lock(r, since + patience, WAITING))
				in_vain = again_too_late(r);
			else
				in_vain = __atomic_load_n(&r->vcpu->calls, __ATOMIC_RELAXED) -
						  before >
					  GUISE_MANY_CALLS;
		}
		now = guise_host_now();
		if (!starving && now - since >= patience) {
			starving = true;
			if (reserved && __atomic_load_n(&r->vcpu->calls, __ATOMIC_RELAXED) == calls)
				__atomic_store_n(&r->vcpu->starving, 1, __ATOMIC_RELAXED);
			else
				__atomic_add_fetch(&r->vcpu->starving, 1, __ATOMIC_RELAXED);
			got = look(r, mine, true, GUISE_SPIN_STARVING) != ~0u;
		}
		if (!got && now - looked > GUISE_LOOK_NS) {
			looked = now;
			got = inherit(s, slot, v, now - since);
		}
	}
	less(&r->vcpu->waiting);
	if (starving)
		less(&r->vcpu->starving);
	return got;
}

void guise_unlock(struct guise_stack *s)
{
	struct guise_region *r = s->region;
	struct guise_slot *self = &s->slots[r->vcpu->carrier];
	struct guise_wakes wakes;
	uint32_t next = 0, old;

	if (__builtin_expect(__atomic_load_n(&r->vcpu->tx_held, __ATOMIC_RELAXED), 0))
		guise_links_flush(s);
	guise_collect_wakes(s, &wakes);
	if (__builtin_expect(wakes.any, 0))
		self->delivering = 1;
	if (__builtin_expect(__atomic_load_n(&r->vcpu->waiting, __ATOMIC_RELAXED) |
				     __atomic_load_n(&r->vcpu->starving, __ATOMIC_RELAXED),
			     0)) {
		__atomic_store_n(&r->vcpu->calls, r->vcpu->calls + 1, __ATOMIC_RELAXED);
		next = __atomic_load_n(&r->vcpu->starving, __ATOMIC_RELAXED) ? GUISE_LOCK_RESERVED
									     : 0;
	}
	old = __atomic_exchange_n(&r->vcpu->lock, next, __ATOMIC_RELEASE);
	if (__builtin_expect(old & GUISE_LOCK_CONTENDED || next, 0))
		host_sys(SYS_futex, &r->vcpu->lock, FUTEX_WAKE_BITSET, 1, 0, 0,
			 next ? STARVING : STARVING | WAITING);
	if (__builtin_expect(wakes.any, 0)) {
		guise_deliver_wakes(s, &wakes);
		__atomic_store_n(&self->delivering, 0, __ATOMIC_RELEASE);
	}
}

void guise_declare_dead(struct guise_stack *s)
{
	struct guise_region *r = s->region;
	unsigned int i;

	__atomic_store_n(&r->dead, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&r->vcpu->lock, 0x7fffffff);
	for (i = 1; i < GUISE_MAX_SLOTS; i++)
		if (s->slots[i].used) {
			__atomic_store_n(&s->slots[i].word, GUISE_WORD_KICKED, __ATOMIC_SEQ_CST);
			guise_futex_wake(&s->slots[i].word, 0x7fffffff);
		}
	guise_ring_bells(s, ~0ull >> (64 - r->bells));
}
