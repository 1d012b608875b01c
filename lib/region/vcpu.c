// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual CPU's lock.
 *
 * Promises: taking it free costs one atomic; nobody who waits is passed over
 * for much longer than GUISE_STARVE_NS; a waiter that dies costs the others
 * nothing but that time.
 *
 * How: a word that holds the owner's slot, and a bit that says somebody sleeps
 * on it. Newcomers may barge in, which is what keeps throughput up. A waiter
 * that was passed over for too long counts itself in region->starving; the
 * next unlock then leaves the word reserved, and only starving waiters may
 * take it (the idea of Go's sync.Mutex). Before it sleeps a waiter spins, as
 * long as spinning has been worth it lately.
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
#include "region/process.h"
#include "region/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>

#define GUISE_STARVE_NS  100000ull
#define GUISE_SPIN_MAX   400u /* about 10 us of pause instructions */
#define GUISE_LOOK_NS    10000000ull
#define GUISE_SILENCE_NS 5000000000ull /* of a holder, after which it is done without */
#define GUISE_SPIN_PROBE 16u           /* spin once in so many, when it was not worth it */

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

void guise_futex_wake(uint32_t *word, int count)
{
	host_sys(SYS_futex, word, FUTEX_WAKE, count, 0, 0, 0);
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
	for (i = 0; i < budget; i++) {
		uint32_t v = 0;

		guise_relax();
		if (__atomic_load_n(&r->lock, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&r->lock, &v, id, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			worth += ((int)i - (int)worth) / 8 + 1;
			return true;
		}
	}
	worth /= 2;
	return false;
}

static void starving_less(struct guise_region *r)
{
	uint32_t n = __atomic_load_n(&r->starving, __ATOMIC_RELAXED);

	/* The holder sets it to 0 when a member dies: do not go below. */
	while (n && !__atomic_compare_exchange_n(&r->starving, &n, n - 1, 0, __ATOMIC_RELAXED,
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
	if (__atomic_load_n(&r->entered, __ATOMIC_ACQUIRE) || (!child && !s->holder_gone)) {
		if (__atomic_load_n(&r->lock, __ATOMIC_ACQUIRE) == v)
			guise_declare_dead(s);
		return false;
	}
	if (!__atomic_compare_exchange_n(&r->lock, &v, slot->id | GUISE_LOCK_CONTENDED, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	guise_wait_mend(s);
	return true;
}

bool guise_lock_slow(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;
	bool starving = false, got = false;
	uint64_t since, now, looked;

	if (spin_for_lock(r, slot->id))
		return true;
	since = looked = guise_host_now();
	while (!__atomic_load_n(&r->dead, __ATOMIC_RELAXED)) {
		uint32_t v = __atomic_load_n(&r->lock, __ATOMIC_RELAXED);

		if (v == 0 || (v == GUISE_LOCK_RESERVED && starving)) {
			/* Others may sleep: the bit makes our unlock look. */
			if (__atomic_compare_exchange_n(&r->lock, &v,
							slot->id | GUISE_LOCK_CONTENDED, 0,
							__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
				got = true;
				break;
			}
			continue;
		}
		if (v != GUISE_LOCK_RESERVED && !(v & GUISE_LOCK_CONTENDED) &&
		    !__atomic_compare_exchange_n(&r->lock, &v, v | GUISE_LOCK_CONTENDED, 0,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		if (v != GUISE_LOCK_RESERVED)
			v |= GUISE_LOCK_CONTENDED;
		guise_futex_wait(&r->lock, v, starving ? 10 * GUISE_STARVE_NS : GUISE_STARVE_NS);
		now = guise_host_now();
		if (!starving && now - since > GUISE_STARVE_NS) {
			starving = true;
			__atomic_add_fetch(&r->starving, 1, __ATOMIC_RELAXED);
		}
		if (now - looked > GUISE_LOOK_NS) {
			looked = now;
			got = inherit(s, slot, v, now - since);
			if (got)
				break;
		}
	}
	if (starving)
		starving_less(r);
	return got;
}

void guise_unlock(struct guise_stack *s)
{
	struct guise_region *r = s->region;
	struct guise_slot *self = &s->slots[r->carrier];
	struct guise_wakes wakes;
	uint32_t next, old;

	if (__builtin_expect(__atomic_load_n(&r->tx_held, __ATOMIC_RELAXED), 0))
		guise_links_flush(s);
	guise_collect_wakes(s, &wakes);
	if (__builtin_expect(wakes.any, 0))
		self->delivering = 1;
	next = __atomic_load_n(&r->starving, __ATOMIC_RELAXED) ? GUISE_LOCK_RESERVED : 0;
	old = __atomic_exchange_n(&r->lock, next, __ATOMIC_RELEASE);
	if (__builtin_expect(old & GUISE_LOCK_CONTENDED || next, 0))
		guise_futex_wake(&r->lock, next ? 0x7fffffff : 1);
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
	guise_futex_wake(&r->lock, 0x7fffffff);
	for (i = 1; i < GUISE_MAX_SLOTS; i++)
		if (s->slots[i].used) {
			__atomic_store_n(&s->slots[i].word, GUISE_WORD_KICKED, __ATOMIC_SEQ_CST);
			guise_futex_wake(&s->slots[i].word, 0x7fffffff);
		}
	guise_ring_bell(s);
}
