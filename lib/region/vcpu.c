// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual CPU's lock.
 *
 * Promises: to take it while it is free costs one atomic operation. A thread that waits
 * gets it after about GUISE_STARVE_NS for each thread that waits at that time. Processes
 * that do nothing but calls make, together, most of the calls that one alone would make.
 * A waiting thread that dies costs the others that time only.
 *
 * The lock is a word: the owner's slot, and a bit that says that a thread sleeps on the
 * word. A thread that comes takes it whenever it is free, even if others wait: to hand it
 * over in order would cost as much as hundreds of calls, because the next owner has to be
 * woken, and all memory that it touches comes from another processor.
 *
 * A thread that finds it taken goes through these states:
 *
 *	spins	looks at the word again and again. Where threads go to sleep in the stack
 *		now and then (others_sleep()), the owner is soon done, and this thread spins
 *		for up to some 20 us. If the owner last ran on this very processor it was
 *		preempted here, and gets the processor (sched_yield). Where threads only make
 *		call after call, this thread spins for as long as that has paid lately
 *	sleeps	on the word. An unlock that finds the bit wakes one
 *	naps	on another word. This is for threads that were woken in vain while many calls
 *		were made, or that several times found the word changed when they wanted to
 *		sleep: to wake them at each unlock would delay an owner that makes call after
 *		call. A thread that goes to sleep in the stack wakes one of them
 *		(guise_wake_napper()), since it leaves a processor free
 *	starves	has waited for its time. It counts itself in vcpu->starving, and the next
 *		unlock reserves the word for starving threads (the idea of Go's sync.Mutex).
 *		It is awake just then, and spins; if that takes long, it sleeps, and is woken
 *		before the others. If no thread takes a reserved word for that long, those
 *		that were counted have been stopped: the next one to starve counts alone
 *
 * The owner reads no clock for all this; waiting threads do. An owner that returns to its
 * program, stops, forks or dies between two calls holds nothing.
 *
 * guise_unlock() also makes the wake-ups real that the kernel asked for (wait.c), and
 * lets links write the frames that they have gathered.
 *
 * If a thread is killed in here, all that it leaves can be mended: the owner's slot stands
 * in the word itself, and wake-ups that are lost with the thread are replaced by waking
 * all threads (slot->delivering; bury.c).
 *
 * The holder does that. If the holder is gone, a thread that waits for long looks whether
 * the owner is gone as well: then it takes the lock from the dead owner, or declares the
 * stack lost if that was inside. It also declares the stack lost if the holder is there,
 * but has done nothing about a dead owner for GUISE_SILENCE_NS (it is stopped, say): the
 * holder may yet do so, and two must not.
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
#include <sched.h>
#include <time.h>

#define GUISE_STARVE_NS     200000ull
#define GUISE_HUNGER_NS     1000000ull    /* how long a starving one sleeps at the most */
#define GUISE_LOOK_NS       10000000ull   /* how often the owner is looked after */
#define GUISE_SILENCE_NS    5000000000ull /* of a holder, after which it is done without */
#define GUISE_MANY_CALLS    16u           /* while one sleeps: not to be disturbed */
#define GUISE_LATE          3u            /* times too late to sleep: the same */
#define GUISE_SPIN_MAX      400u          /* about 10 us of pause instructions */
#define GUISE_SPIN_STARVING 800u
#define GUISE_SPIN_PROBE    16u  /* spin once in so many, when it was not worth it */
#define GUISE_SPIN_PART     100u /* between two looks at where the owner runs, ... */
#define GUISE_SPIN_PARTS    8    /* ... and how many of these */
#define GUISE_QUIET         8u   /* questions without a sleeper between them */

/* The two kinds of sleepers on the word, for the host's kernel (FUTEX_WAKE_BITSET). */
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

		guise_isa_relax();
		v = __atomic_load_n(&r->vcpu->lock, __ATOMIC_RELAXED);
		if (is_free(v, starving) && take(r, v, mine))
			return i;
	}
	return ~0u;
}

/* Whether threads have gone to sleep in the stack since this thread asked a few times. */
static bool others_sleep(const struct guise_region *r)
{
	static __thread unsigned int quiet __attribute__((tls_model("initial-exec")));
	static __thread uint64_t seen __attribute__((tls_model("initial-exec")));
	uint64_t now = __atomic_load_n(&r->waits, __ATOMIC_RELAXED);

	quiet = now == seen ? quiet + 1 : 0;
	seen = now;
	return quiet < GUISE_QUIET;
}

/* The owner last ran on the processor on which this thread runs now: so it does not run. */
static bool owner_preempted_here(const struct guise_stack *s)
{
	uint32_t owner = guise_lock_owner(s->region);

	return owner && __atomic_load_n(&s->slots[owner].cpu, __ATOMIC_RELAXED) ==
				(uint32_t)sched_getcpu() + 1;
}

static bool spin_among_sleepers(struct guise_stack *s, uint32_t id)
{
	for (int i = 0; i < GUISE_SPIN_PARTS; i++) {
		if (owner_preempted_here(s))
			host_sys(SYS_sched_yield);
		if (look(s->region, id, false, GUISE_SPIN_PART) != ~0u)
			return true;
	}
	return false;
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

bool guise_holder_gone(struct guise_stack *s)
{
	struct pollfd p = { .fd = s->alive };
	const struct timespec at_once = { 0, 0 };

	if (!s->holder_gone && s->alive > 0 && host_sys(SYS_ppoll, &p, 1, &at_once, NULL, 8) > 0)
		s->holder_gone = true;
	return s->holder_gone;
}

/*
 * Whether the owner is gone. Processes 0 and 1 are the holder's. A member is gone when its
 * process has ended. That cannot be told by a process that sees other pids than the holder.
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
 * This thread has waited for so long for the lock, whose word is v. True when it has now taken
 * the lock, from an owner that is dead.
 */
static bool inherit(struct guise_stack *s, struct guise_slot *slot, uint32_t v, uint64_t waited)
{
	struct guise_region *r = s->region;
	uint32_t owner = v & ~(GUISE_LOCK_CONTENDED | GUISE_LOCK_RESERVED);
	/* Owned by this very thread's slot: its vfork child used it, and was killed. */
	bool child = owner == slot->id;

	if (!owner || (!child && ((!guise_holder_gone(s) && waited < GUISE_SILENCE_NS) ||
				  !owner_gone(s, &s->slots[owner]))))
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

/* Sleeps until the lock is given up and this thread is woken, or until that time. False: it did
 * not sleep, because the word had changed. */
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

/* Counts that the word changed before this thread could sleep on it. True when that happened
 * several times while no thread in the stack began to wait: owners make call after call. */
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

/* Sleeps until that time, or until a thread goes to sleep in the stack. */
static void nap(struct guise_region *r, uint64_t until)
{
	uint32_t seen = __atomic_load_n(&r->vcpu->nap, __ATOMIC_ACQUIRE);

	__atomic_add_fetch(&r->vcpu->napping, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->vcpu->lock, __ATOMIC_SEQ_CST))
		futex_wait_until(&r->vcpu->nap, seen, until, WAITING);
	less(&r->vcpu->napping);
}

void guise_wake_napper_slow(struct guise_region *r)
{
	__atomic_add_fetch(&r->vcpu->nap, 1, __ATOMIC_RELEASE);
	guise_futex_wake(&r->vcpu->nap, 1);
}

/* The word for a thread that has waited. If others may sleep, the bit makes its unlock wake one. */
static uint32_t mine(const struct guise_region *r, const struct guise_slot *slot)
{
	return slot->id |
	       (__atomic_load_n(&r->vcpu->waiting, __ATOMIC_RELAXED) > 1 ? GUISE_LOCK_CONTENDED
									 : 0);
}

bool guise_lock_slow(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;
	bool starving = false, in_vain = false, got = false;
	uint64_t since, patience, now, looked;
	uint32_t calls = 0; /* when it was first seen reserved, and still is */
	bool reserved = false;

	if (others_sleep(r) ? spin_among_sleepers(s, slot->id) : spin_for_lock(r, slot->id))
		return true;
	since = now = looked = guise_host_now();
	patience =
		GUISE_STARVE_NS * (1 + __atomic_fetch_add(&r->vcpu->waiting, 1, __ATOMIC_RELAXED));
	while (!got && !__atomic_load_n(&r->dead, __ATOMIC_RELAXED)) {
		uint32_t v = __atomic_load_n(&r->vcpu->lock, __ATOMIC_RELAXED);

		if (is_free(v, starving)) {
			got = take(r, v, mine(r, slot));
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
			nap(r, since + patience);
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
			got = look(r, mine(r, slot), true, GUISE_SPIN_STARVING) != ~0u;
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
	for (i = 1; i < guise_slots_end(s); i++)
		if (s->slots[i].used) {
			__atomic_store_n(&s->slots[i].word, GUISE_WORD_KICKED, __ATOMIC_SEQ_CST);
			guise_futex_wake(&s->slots[i].word, 0x7fffffff);
		}
	for (i = 0; i < r->bells; i++)
		guise_ring_bell(s, i);
}
