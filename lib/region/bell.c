// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bells: pipes that the members have. They wake threads that sleep in ppoll(2).
 *
 * Promises: a thread that is kicked while it sleeps in ppoll wakes; other threads hardly
 * ever do; a thread that cannot wake, because it is stopped, frozen or held by a debugger,
 * costs the others next to nothing.
 *
 * How many: GUISE_BELLS_FIRST when a stack begins, which all processes have, and twice as many
 * when a thread finds that all are taken, up to region->bells_most. The creator makes them. A
 * process gets the new ones when one of its threads goes to sleep (additions.c).
 *
 * Which bell: one that no other thread has, from the moment in which a thread goes to sleep
 * until it has looked again. So up to GUISE_BELLS threads sleep on a bell each. Beyond that
 * a few threads share the one that the slot's number gives, or, when that is rung for a slot
 * that has not seen it yet, one that is not. A thread that sleeps on a later bell sleeps on one of
 * the first as well (guise_bell_first()): a process that has not got the later bell yet rings
 * that one. So when there are later ones no thread takes one of the first for its own: all that
 * sleep on it would wake with it.
 *
 * Ringing: a thread that wakes empties its bell at once, before it takes the virtual CPU, in
 * order not to make that call of the host with the virtual CPU. If other slots have not
 * seen the bell that was rung for them (pending), it is rung again; their threads are awake
 * too, or soon will be. A slot that has not seen it after GUISE_BELL_LOOKS such repetitions
 * and after GUISE_BELL_NS is late. Then the bell is no longer repeated for it, and is rung
 * anew after a pause, which grows from GUISE_PAUSE_MIN to GUISE_PAUSE_MAX. Repetitions
 * count beside the time because a busy machine may run none of the threads for long.
 *
 * Why not one for each thread: every process would need a descriptor for each thread of every
 * other process. A stack whose programs may not have many descriptors has few bells
 * (guise_bells_most()).
 *
 * Limits: a late thread that goes on, without a tracer that sees it, may see its bell as
 * much as GUISE_PAUSE_MAX later. In simulated time no slot is late: the clock waits for it.
 */
#include "region/bell.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/confined.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define NEVER            (~0ull)
#define FDS_FOR_A_BELL   64 /* of those that a process may have (the hard limit) */
#define GUISE_BELL_LOOKS 64u
#define GUISE_BELL_NS    2000000ull
#define GUISE_PAUSE_MIN  4000000ull
#define GUISE_PAUSE_MAX  128000000ull

_Static_assert(GUISE_BELLS % 64 == 0, "sets of bells are of whole words");

/* One descriptor for both ends of a pipe; where there is no /proc, an eventfd. */
int guise_bell_make(void)
{
	char name[32];
	int end[2];
	long fd;

	if (guise_confined.bell)
		return guise_confined.bell();
	fd = host_sys(SYS_pipe2, end, O_CLOEXEC);
	if (fd < 0)
		return (int)fd;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", end[0]);
	fd = host_sys(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	host_sys(SYS_close, end[0]);
	host_sys(SYS_close, end[1]);
	/* A user may have pipes of some 16,000 pages in all, and a pipe has 16 otherwise. */
	if (fd >= 0)
		host_sys(SYS_fcntl, fd, F_SETPIPE_SZ, 1);
	else
		fd = host_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	return guise_fd_high((int)fd);
}

unsigned int guise_bells_most(void)
{
	struct rlimit limit = { 1024, 1024 };

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	if (limit.rlim_max >= (rlim_t)GUISE_BELLS * FDS_FOR_A_BELL)
		return GUISE_BELLS;
	return limit.rlim_max > (rlim_t)GUISE_BELLS_FIRST * FDS_FOR_A_BELL
		       ? (unsigned int)(limit.rlim_max / FDS_FOR_A_BELL)
		       : GUISE_BELLS_FIRST;
}

int guise_bells_make(struct guise_stack *s, unsigned int n)
{
	struct guise_region *r = s->region;

	for (unsigned int i = s->bells; i < n; i++) {
		s->bell[i] = guise_bell_make();
		if (s->bell[i] < 0)
			return guise_fail(-s->bell[i],
					  "no descriptor to wake threads by (%u of %u): %s", i + 1,
					  n, strerror(-s->bell[i]));
		r->vcpu->bell[i].again = NEVER;
		__atomic_store_n(&s->bells, i + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&r->bells, i + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

/* Whether this process can ring it. */
static bool has(const struct guise_stack *s, unsigned int bell)
{
	return bell < __atomic_load_n(&s->bells, __ATOMIC_ACQUIRE);
}

void guise_ring_bell(struct guise_stack *s, unsigned int bell)
{
	const uint64_t one = 1;

	host_sys(SYS_write, s->bell[has(s, bell) ? bell : guise_bell_first(bell)], &one,
		 sizeof(one));
}

void guise_ring_bells(struct guise_stack *s, const struct guise_bell_set *set)
{
	for (unsigned int i = 0; i < GUISE_BELLS / 64; i++)
		for (uint64_t left = set->word[i]; left; left &= left - 1)
			guise_ring_bell(s, i * 64 + (unsigned int)__builtin_ctzll(left));
}

void guise_empty_bell(struct guise_stack *s, struct guise_slot *slot, unsigned int bell)
{
	char rung[64];

	/* Killed after this, it leaves the others that share the bell asleep. */
	__atomic_store_n(&slot->delivering, 1, __ATOMIC_RELEASE);
	host_sys(SYS_read, s->bell[bell], rung, sizeof(rung));
	/* Nobody rings it again when the stack is lost. */
	if (__builtin_expect(__atomic_load_n(&s->region->dead, __ATOMIC_SEQ_CST), 0))
		guise_ring_bell(s, bell);
}

/* Sets when a bell is rung anew. */
static void again(struct guise_region *r, struct guise_bell *bell, uint64_t when)
{
	bell->again = when;
	r->vcpu->bell_again = NEVER;
	for (unsigned int i = 0; i < r->bells; i++)
		if (r->vcpu->bell[i].again < r->vcpu->bell_again)
			r->vcpu->bell_again = r->vcpu->bell[i].again;
}

/* No bell has to ring for it any more. */
static void seen(struct guise_region *r, struct guise_slot *slot)
{
	struct guise_bell *bell = &r->vcpu->bell[slot->bell];

	if (slot->belled == GUISE_BELLED)
		bell->pending--;
	else if (slot->belled && !--bell->late)
		again(r, bell, NEVER);
	slot->belled = 0;
}

/* The bell that a slot shares, when all n from this one on have sleepers. */
static unsigned int share(const struct guise_region *r, const struct guise_slot *slot,
			  unsigned int from, unsigned int n)
{
	const unsigned int first = slot->id % n;

	for (unsigned int i = 0; i < n; i++)
		if (!r->vcpu->bell[from + (first + i) % n].pending)
			return from + (first + i) % n;
	return from + first;
}

/* A bell without sleepers, the one that the slot had last if that is one; else a shared one. */
static unsigned int choose(const struct guise_stack *s, const struct guise_slot *slot)
{
	const struct guise_region *r = s->region;
	const unsigned int bells = __atomic_load_n(&s->bells, __ATOMIC_ACQUIRE);
	const unsigned int from = bells > GUISE_BELLS_FIRST ? GUISE_BELLS_FIRST : 0;

	if (slot->bell >= from && slot->bell < bells && !r->vcpu->bell[slot->bell].sleepers)
		return slot->bell;
	for (unsigned int i = 0; i < GUISE_BELLS / 64; i++) {
		uint64_t free = ~r->vcpu->bells_taken[i] & (i ? ~0ull : ~0ull << from);
		unsigned int bell = i * 64 + (free ? (unsigned int)__builtin_ctzll(free) : 0);

		if (free && bell < bells)
			return bell;
	}
	return share(r, slot, from, bells - from);
}

/* Notes that the slot has its bell. */
static void have(struct guise_region *r, struct guise_slot *slot)
{
	slot->has_bell = 1;
	r->vcpu->bell[slot->bell].sleepers++;
	r->vcpu->bells_taken[slot->bell / 64] |= 1ull << slot->bell % 64;
}

void guise_bell_leave(struct guise_region *r, struct guise_slot *slot)
{
	seen(r, slot);
	if (!slot->has_bell)
		return;
	slot->has_bell = 0;
	if (!--r->vcpu->bell[slot->bell].sleepers)
		r->vcpu->bells_taken[slot->bell / 64] &= ~(1ull << slot->bell % 64);
}

unsigned int guise_bell_owed(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;

	seen(r, slot);
	if (__builtin_expect(!has(s, slot->bell), 0)) {
		const bool had = slot->has_bell;

		s->bells_missed = true;
		guise_bell_leave(r, slot);
		__atomic_store_n(&slot->bell, guise_bell_first(slot->bell), __ATOMIC_RELAXED);
		if (had)
			have(r, slot);
	}
	slot->belled = GUISE_BELLED;
	r->vcpu->bell[slot->bell].pending++;
	return slot->bell;
}

bool guise_bell_take(struct guise_stack *s, struct guise_slot *slot)
{
	/* It may have one: of a wait in which its vfork child was killed. */
	guise_bell_leave(s->region, slot);
	slot->bell = choose(s, slot);
	have(s->region, slot);
	if (slot->bell < GUISE_BELLS_FIRST && s->region->bells > GUISE_BELLS_FIRST)
		return false;
	return s->region->vcpu->bell[slot->bell].sleepers == 1;
}

/* Sets belled of all slots that this bell was rung for. Returns how many there are. */
static uint32_t set_all(struct guise_stack *s, unsigned int bell, uint32_t belled)
{
	uint32_t n = 0;

	for (unsigned int i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (slot->bell != bell || !slot->belled ||
		    !__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE))
			continue;
		slot->belled = belled;
		n++;
	}
	return n;
}

static void mend(struct guise_stack *s, unsigned int i)
{
	struct guise_bell *bell = &s->region->vcpu->bell[i];

	bell->pending = set_all(s, i, GUISE_BELLED);
	bell->late = bell->vain = 0;
	again(s->region, bell, NEVER);
}

void guise_bell_mend(struct guise_stack *s)
{
	for (unsigned int i = 0; i < s->region->bells; i++) {
		mend(s, i);
		s->region->vcpu->bell[i].sleepers = 0;
	}
	memset(s->region->vcpu->bells_taken, 0, sizeof(s->region->vcpu->bells_taken));
	for (unsigned int i = 1; i < guise_slots_end(s); i++)
		if (s->slots[i].has_bell && __atomic_load_n(&s->slots[i].used, __ATOMIC_ACQUIRE))
			have(s->region, &s->slots[i]);
}

static uint64_t now(struct guise_stack *s)
{
	return s->ops->clock(s->ops, 0);
}

/* The bell rang, and slots that it was for have not seen it yet: true when they are late. */
static bool rang_in_vain(struct guise_stack *s, struct guise_bell *bell)
{
	if (s->region->clock_mode != GUISE_CLOCK_REAL)
		return false;
	if (!bell->vain++)
		bell->since = now(s);
	return bell->vain > GUISE_BELL_LOOKS && now(s) - bell->since > GUISE_BELL_NS;
}

static void go_on_without(struct guise_stack *s, unsigned int i)
{
	struct guise_bell *bell = &s->region->vcpu->bell[i];

	if (!bell->late) {
		bell->pause = bell->pause ? bell->pause * 2 : GUISE_PAUSE_MIN;
		if (bell->pause > GUISE_PAUSE_MAX)
			bell->pause = GUISE_PAUSE_MAX;
		again(s->region, bell, now(s) + bell->pause);
	}
	bell->late = set_all(s, i, GUISE_BELL_LATE);
	bell->pending = bell->vain = 0;
}

/* The pause of some bells is over. */
static void ring_anew(struct guise_stack *s)
{
	for (unsigned int i = 0; i < s->region->bells; i++) {
		struct guise_bell *bell = &s->region->vcpu->bell[i];

		if (now(s) < bell->again)
			continue;
		if (has(s, i)) {
			mend(s, i);
			guise_ring_bell(s, i);
		} else {
			again(s->region, bell, now(s) + GUISE_PAUSE_MIN);
		}
	}
}

/* A bell rang, and was emptied. */
static void quiet(struct guise_stack *s, unsigned int i)
{
	struct guise_bell *bell = &s->region->vcpu->bell[i];

	if (!bell->pending) {
		bell->vain = 0;
		if (!bell->late)
			bell->pause = 0;
	} else if (rang_in_vain(s, bell)) {
		go_on_without(s, i);
	} else {
		guise_ring_bell(s, i);
	}
}

void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, int rang)
{
	guise_bell_leave(s->region, slot);
	if (rang >= 0) {
		quiet(s, (unsigned int)rang);
		__atomic_store_n(&slot->delivering, 0, __ATOMIC_RELEASE);
	}
	if (__builtin_expect(s->region->vcpu->bell_again != NEVER, 0) &&
	    now(s) >= s->region->vcpu->bell_again)
		ring_anew(s);
}
