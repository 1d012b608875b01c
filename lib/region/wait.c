// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a host thread waits whose task sleeps in the stack. A thread that waits does the
 * stack's work meanwhile.
 *
 * One waiter leads: it sleeps in ppoll(2) on the links' descriptors until the
 * kernel's next timer, and continues the kernel when something happens, for
 * all. The others follow: they sleep on the futex word of their slot. When the
 * leader's own task becomes ready it goes back to its program and the next
 * follower is promoted, which costs a wake-up. So if there is no follower, or all devices
 * can wait a millisecond, the pump of the holder takes over instead (pump.c). Without
 * devices the leader sleeps on its futex, too. A thread that is stopped (SIGSTOP) neither
 * leads nor is promoted: the tracer marks it, and the pump, which watches the leader, takes
 * its place.
 *
 * The owner of the virtual CPU decides on a wake-up (the kernel kicks a slot), and makes it
 * after it has given the virtual CPU up, so that the woken thread does not find the lock
 * taken. A sleeper's word says how to reach it:
 *
 *	AWAY -> SPIN -> FUTEX | POLL -> KICKED -> AWAY
 *
 * Sleepers in ppoll are reached by a bell, a pipe (bell.c).
 *
 * Before it sleeps a waiter spins on its word for as long as that has paid
 * lately: a partner on another processor answers within microseconds, while on a
 * busy machine spinning only takes the partner's time away.
 *
 * A thread that only serves others (a relay of the holder) waits in the background:
 * it never leads, and is never promoted, so that the thread that gets a frame is one of a
 * program that waits. If no such thread waits, the pump leads.
 *
 * In simulated time, the last thread that has nothing to do moves the clock to the next
 * event instead of sleeping.
 */
#include "region/wait.h"

#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/additions.h"
#include "region/bell.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#define NEVER        (~0ull)
#define PUMP_LATE_NS 20000000ull
#define SPIN_MAX     2000u /* pauses: 25 to 30 us */
#define SPIN_MIN     64u
#define SPIN_PROBE   32u /* spin once in so many waits, when it was not worth it */
#define POLL_OWN     (3 + GUISE_MAX_LINKS) /* bells, the holder's end, links */
#define POLL_FEW     (POLL_OWN + 32)

static __thread bool in_background;

void guise_wait_in_background(void)
{
	in_background = true;
}

static void add_wake(struct guise_wakes *wakes, uint32_t *word)
{
	if (wakes->n < sizeof(wakes->word) / sizeof(wakes->word[0]))
		wakes->word[wakes->n++] = word;
	else
		guise_futex_wake(word, 1);
}

/* It no longer waits: for simulated time it is busy from this moment on. */
static void end_waiting(struct guise_region *r, struct guise_slot *slot)
{
	if (!slot->waiting)
		return;
	slot->waiting = 0;
	__atomic_add_fetch(&r->online, 1, __ATOMIC_RELAXED);
}

/* Tells a slot's host thread to look again. */
static void wake_slot(struct guise_stack *s, struct guise_slot *slot, struct guise_wakes *wakes)
{
	uint32_t old = __atomic_exchange_n(&slot->word, GUISE_WORD_KICKED, __ATOMIC_ACQ_REL);

	switch (old) {
	case GUISE_WORD_AWAY:
		/* Not waiting: it will see for itself. */
		__atomic_store_n(&slot->word, GUISE_WORD_AWAY, __ATOMIC_RELEASE);
		return;
	case GUISE_WORD_FUTEX:
		add_wake(wakes, &slot->word);
		break;
	case GUISE_WORD_POLL:
		guise_bell_add(&wakes->bells, guise_bell_owed(s, slot));
		break;
	}
	end_waiting(s->region, slot);
}

void guise_wait_interrupt(struct guise_stack *s, struct guise_slot *slot)
{
	uint32_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);

	while (word == GUISE_WORD_SPIN || word == GUISE_WORD_FUTEX || word == GUISE_WORD_POLL) {
		if (!__atomic_compare_exchange_n(&slot->word, &word, GUISE_WORD_KICKED, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		if (word == GUISE_WORD_FUTEX)
			guise_futex_wake(&slot->word, 1);
		else if (word == GUISE_WORD_POLL)
			guise_ring_bell(s, slot->bell);
		break;
	}
}

void guise_wait_look(struct guise_stack *s, uint32_t proc)
{
	for (unsigned int i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) &&
		    (proc == GUISE_EVERY_PROC || slot->proc == proc))
			guise_wait_interrupt(s, slot);
	}
	if (proc == GUISE_EVERY_PROC)
		guise_pump_wake(s);
}

static bool has_devices(struct guise_stack *s)
{
	unsigned int i;

	for (i = 0; i < GUISE_MAX_LINKS; i++)
		if (guise_link_live(s, i))
			return true;
	return false;
}

/* The follower that is promoted next. */
static struct guise_slot *can_lead(struct guise_stack *s)
{
	uint32_t i = s->region->vcpu->wait_head;

	while (i && __atomic_load_n(&s->slots[i].still, __ATOMIC_RELAXED) == GUISE_STILL)
		i = s->slots[i].wait_next;
	return i ? &s->slots[i] : NULL;
}

void guise_collect_wakes_slow(struct guise_stack *s, struct guise_wakes *wakes)
{
	struct guise_region *r = s->region;
	struct guise_slot *next;

	wakes->any = true;
	wakes->bells = (struct guise_bell_set){ 0 };
	wakes->n = 0;
	while (r->vcpu->kick_head) {
		struct guise_slot *slot = &s->slots[r->vcpu->kick_head];

		r->vcpu->kick_head = slot->kick_next;
		slot->kick_next = 0;
		if (slot->kicked) {
			r->kicks++;
			slot->waker_cpu = (uint32_t)sched_getcpu() + 1;
			wake_slot(s, slot, wakes);
		}
	}
	if (r->vcpu->leader) {
		if (guise_leader_deadline(r) < r->vcpu->leader_until || guise_leader_must_poll(r)) {
			r->vcpu->leader_until = guise_leader_deadline(r);
			r->vcpu->leader_tx |=
				__atomic_load_n(&r->vcpu->tx_blocked, __ATOMIC_RELAXED);
			wake_slot(s, &s->slots[r->vcpu->leader], wakes);
		}
		return;
	}
	/* Asked once: the tracer may stop that thread at any time. */
	next = guise_links_stale(s) ? NULL : can_lead(s); /* else it might be one of this process */
	if (next && (!r->vcpu->pump_alive || has_devices(s))) {
		wake_slot(s, next, wakes);
	} else if (r->vcpu->pump_word == GUISE_PUMP_SLEEPS) {
		r->vcpu->pump_word = GUISE_PUMP_AWAKE;
		add_wake(wakes, &r->vcpu->pump_word);
	}
}

void guise_deliver_wakes(struct guise_stack *s, struct guise_wakes *wakes)
{
	unsigned int i;

	for (i = 0; i < wakes->n; i++)
		guise_futex_wake(wakes->word[i], 1);
	guise_ring_bells(s, &wakes->bells);
}

void guise_note_time(struct guise_stack *s)
{
	struct guise_region *r = s->region;

	if (r->vcpu->next_event != NEVER && s->ops->clock(s->ops, 0) >= r->vcpu->next_event)
		__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_TIMER, __ATOMIC_RELEASE);
}

static void follow(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;

	slot->follows = 1;
	slot->wait_prev = 0;
	slot->wait_next = r->vcpu->wait_head;
	if (r->vcpu->wait_head)
		s->slots[r->vcpu->wait_head].wait_prev = slot->id;
	r->vcpu->wait_head = slot->id;
}

void guise_unfollow(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;

	if (slot->wait_prev)
		s->slots[slot->wait_prev].wait_next = slot->wait_next;
	else
		r->vcpu->wait_head = slot->wait_next;
	if (slot->wait_next)
		s->slots[slot->wait_next].wait_prev = slot->wait_prev;
	slot->follows = 0;
}

void guise_wait_mend(struct guise_stack *s)
{
	struct guise_wakes wakes = { .any = true };
	struct guise_region *r = s->region;
	unsigned int i;

	r->vcpu->wait_head = 0;
	guise_bell_mend(s);
	for (i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE))
			continue;
		if (slot->follows)
			follow(s, slot);
	}
	for (i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE) == GUISE_WORD_AWAY)
			continue;
		wake_slot(s, slot, &wakes);
		/* Its word may have been set by a thread that died before it could wake it. */
		if (slot->has_bell)
			guise_bell_add(&wakes.bells, guise_bell_owed(s, slot));
		guise_futex_wake(&slot->word, 1);
	}
	r->vcpu->pump_word = GUISE_PUMP_AWAKE;
	guise_futex_wake(&r->vcpu->pump_word, 1);
	guise_deliver_wakes(s, &wakes);
}

void guise_wake_continued(struct guise_stack *s)
{
	struct guise_wakes wakes = { .any = true };
	bool late = false;

	for (unsigned int i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&slot->still, __ATOMIC_RELAXED) != GUISE_CONTINUED)
			continue;
		/* It may have been late for the last ring; now it can see it. */
		if (slot->belled) {
			late = true;
			guise_bell_add(&wakes.bells, slot->bell);
		} else {
			wake_slot(s, slot, &wakes);
		}
	}
	if (late)
		guise_bell_mend(s);
	guise_deliver_wakes(s, &wakes);
}

/*
 * Spins on the word of a slot; true when it changed. After a success the budget goes up at
 * once, to more than what that took; after failures it goes down slowly. For a partner that
 * sleeps answers late, and both threads have to spin before it pays for either. A
 * partner that last ran on this processor cannot answer while we spin on it.
 */
static bool spin_on_word(struct guise_slot *slot)
{
	static __thread unsigned int worth = SPIN_MAX / 2, skipped;
	unsigned int i, budget = worth;

	if (slot->waker_cpu == (uint32_t)sched_getcpu() + 1)
		return false;
	if (budget < SPIN_MIN) {
		if (++skipped % SPIN_PROBE)
			return false;
		budget = SPIN_MAX;
	}
	for (i = 0; i < budget; i++) {
		if (__atomic_load_n(&slot->word, __ATOMIC_ACQUIRE) != GUISE_WORD_SPIN) {
			if (i * 4 + SPIN_MIN > worth)
				worth = i * 4 + SPIN_MIN > SPIN_MAX ? SPIN_MAX : i * 4 + SPIN_MIN;
			return true;
		}
		guise_isa_relax();
	}
	worth -= worth / 4;
	return false;
}

static uint64_t time_left(struct guise_stack *s, uint64_t deadline)
{
	uint64_t now;

	if (deadline == NEVER)
		return NEVER;
	now = s->ops->clock(s->ops, 0);
	return deadline > now ? deadline - now : 0;
}

int guise_poll_devices(struct guise_stack *s, const struct guise_slot *slot, uint64_t deadline,
		       bool devices, struct guise_pollset *ps)
{
	struct guise_region *r = s->region;
	struct pollfd few[POLL_FEW], *p = few;
	struct guise_room room = { 0 };
	uint32_t rx = 0, tx = 0, link[GUISE_MAX_LINKS];
	unsigned int n = 0, alive = 0, first, bell, i;
	uint64_t left = time_left(s, deadline);
	struct timespec ts = { (time_t)(left / 1000000000ull), (long)(left % 1000000000ull) };
	int rang = GUISE_NO_BELL;
	long got;

	if (ps && ps->n > POLL_FEW - POLL_OWN) {
		room.bytes = (POLL_OWN + ps->n) * sizeof(*p);
		room.at = guise_room_take(room.bytes);
		if (room.at)
			p = room.at;
		else
			ps->n = POLL_FEW - POLL_OWN;
	}
	/* Who wakes it may just be moving it to its other bell (guise_bell_owed()). */
	bell = slot ? __atomic_load_n(&slot->bell, __ATOMIC_RELAXED) : 0;
	p[n++] = (struct pollfd){ .fd = slot ? s->bell[bell] : -1, .events = POLLIN };
	if (bell >= GUISE_BELLS_FIRST)
		p[n++] = (struct pollfd){ .fd = s->bell[guise_bell_first(bell)], .events = POLLIN };
	if (devices && s->alive >= 0) {
		alive = n;
		p[n++] = (struct pollfd){ .fd = s->alive, .events = 0 };
	}
	first = n;
	for (i = 0; devices && i < GUISE_MAX_LINKS; i++) {
		const struct guise_link_backend *backend =
			__atomic_load_n(&s->port[i].backend, __ATOMIC_ACQUIRE);
		short events = POLLIN;

		/* Another thread may be adding or removing it. */
		if (!guise_link_live(s, i) || !backend)
			continue;
		if (__atomic_load_n(&r->vcpu->tx_blocked, __ATOMIC_RELAXED) & (1u << i))
			events |= POLLOUT;
		link[n - first] = i;
		p[n++] = (struct pollfd){ .fd = s->port[i].fd[0], .events = events };
	}
	if (ps) {
		memcpy(p + n, ps->fds, ps->n * sizeof(*p));
		ps->ready = 0;
	}
	got = host_sys(SYS_ppoll, p, n + (ps ? ps->n : 0), left == NEVER ? NULL : &ts, NULL, 8);
	if (got > 0) {
		if (p[0].revents)
			rang = (int)bell;
		else if (bell >= GUISE_BELLS_FIRST && p[1].revents)
			rang = (int)guise_bell_first(bell);
		if (alive && p[alive].revents) {
			/* The holder is gone: its pump is, not the stack. */
			r->vcpu->pump_alive = 0;
			r->vcpu->pump_until = 0;
			s->holder_gone = true;
			host_sys(SYS_close, s->alive);
			s->alive = -1;
		}
		for (i = first; i < n; i++) {
			if (p[i].revents & ~POLLOUT)
				rx |= 1u << link[i - first];
			if (p[i].revents & POLLOUT)
				tx |= 1u << link[i - first];
		}
		for (i = 0; ps && i < ps->n; i++) {
			ps->fds[i].revents = p[n + i].revents;
			ps->ready += p[n + i].revents != 0;
		}
		if (rx) {
			__atomic_or_fetch(&r->vcpu->rx_pending, rx, __ATOMIC_RELAXED);
			__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_RX, __ATOMIC_RELEASE);
		}
		if (tx) {
			/* What a link has gathered goes out with the next unlock. */
			__atomic_and_fetch(&r->vcpu->tx_blocked, ~tx, __ATOMIC_RELAXED);
			__atomic_or_fetch(&r->vcpu->tx_held, tx, __ATOMIC_RELAXED);
			__atomic_or_fetch(&r->vcpu->tx_pending, tx, __ATOMIC_RELAXED);
			__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_TX, __ATOMIC_RELEASE);
		}
	}
	guise_room_leave(&room);
	return rang;
}

/* The last thread with nothing to do moves simulated time. */
static bool jump(struct guise_stack *s)
{
	struct guise_region *r = s->region;

	if (r->clock_mode != GUISE_CLOCK_SIM || r->vcpu->next_event == NEVER ||
	    __atomic_load_n(&r->online, __ATOMIC_ACQUIRE))
		return false;
	if (r->sim_now < r->vcpu->next_event)
		r->sim_now = r->vcpu->next_event;
	__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_TIMER, __ATOMIC_RELEASE);
	return true;
}

/*
 * The leader leaves the clock to a pump that stands by, and is to look at it by `deadline`: to
 * arm a timer that is the host's next one costs as much as to sleep. Should the pump not look,
 * because the holder is stopped or gone, a leader in ppoll hears that, and another one sleeps
 * only until PUMP_LATE_NS later. Returns until when it sleeps.
 */
static uint64_t leave_clock(struct guise_vcpu *vcpu, uint64_t deadline, bool polls)
{
	vcpu->leader_timeless = vcpu->pump_until && deadline >= vcpu->pump_until;
	vcpu->leader_until = vcpu->leader_timeless ? vcpu->pump_until : deadline;
	if (!vcpu->leader_timeless)
		return deadline;
	return polls ? NEVER : vcpu->pump_until + PUMP_LATE_NS;
}

/* A leader has slept until then: if the pump should have looked at the clock before that, leaders
 * do so themselves until it does. If it is gone with its holder, they lead as without one. */
static void look_at_pump(struct guise_stack *s, uint64_t then)
{
	struct guise_vcpu *vcpu = s->region->vcpu;

	if (then >= vcpu->pump_until + PUMP_LATE_NS)
		vcpu->pump_until = 0;
	if (vcpu->pump_alive && guise_holder_gone(s))
		vcpu->pump_alive = 0;
}

/* The bell that rang, or GUISE_NO_BELL. */
static int sleep_on(struct guise_stack *s, struct guise_slot *slot, bool lead, bool devices,
		    uint64_t deadline, struct guise_pollset *ps)
{
	uint32_t word = GUISE_WORD_SPIN;
	bool simulated = s->region->clock_mode == GUISE_CLOCK_SIM;
	/* One that has no timer would not hear that the holder is gone. */
	bool poll = ps || devices || (lead && deadline == NEVER && s->alive >= 0);

	/* A leader that has devices to watch does not spin. */
	if (!devices && spin_on_word(slot))
		return GUISE_NO_BELL;
	if (!__atomic_compare_exchange_n(&slot->word, &word,
					 poll ? GUISE_WORD_POLL : GUISE_WORD_FUTEX, 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return GUISE_NO_BELL;
	/* guise_declare_dead() may have looked at the word just before this thread set it. */
	if (__atomic_load_n(&s->region->dead, __ATOMIC_SEQ_CST))
		return GUISE_NO_BELL;
	/* Followers leave the clock to the leader. */
	if (simulated || !lead)
		deadline = NEVER;
	if (poll) {
		int rang = guise_poll_devices(s, slot, deadline, lead, ps);

		if (rang >= 0)
			guise_empty_bell(s, slot, (unsigned int)rang);
		return rang;
	}
	if (guise_futex_wait(&slot->word, GUISE_WORD_FUTEX, time_left(s, deadline)) == -ETIMEDOUT &&
	    lead)
		look_at_pump(s, deadline);
	return GUISE_NO_BELL;
}

bool guise_wait(struct guise_stack *s, struct guise_slot *slot, struct guise_pollset *ps)
{
	struct guise_region *r = s->region;
	bool lead = !in_background && (!r->vcpu->leader || r->vcpu->leader == r->vcpu->pump_slot);
	uint64_t deadline = guise_leader_deadline(r);
	int rang = GUISE_NO_BELL;
	bool alone = true, devices;

	if (__builtin_expect(guise_links_stale(s), 0)) {
		guise_additions_place(s);
		lead = lead && !guise_links_stale(s);
	}
	devices = lead && has_devices(s);
	if (ps)
		ps->ready = 0;
	slot->waiting = 1;
	__atomic_store_n(&slot->still, 0, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&r->online, 1, __ATOMIC_RELAXED);
	r->waits++;
	if (jump(s)) {
		end_waiting(r, slot);
		return true;
	}
	if (lead) {
		r->vcpu->leader = slot->id;
		deadline = leave_clock(r->vcpu, deadline, ps || devices);
		r->vcpu->leader_tx = __atomic_load_n(&r->vcpu->tx_blocked, __ATOMIC_RELAXED);
		r->vcpu->activity++;
	} else if (!in_background) {
		follow(s, slot);
	}
	if (ps || lead)
		alone = guise_bell_take(s, slot);
	__atomic_store_n(&slot->word, GUISE_WORD_SPIN, __ATOMIC_RELEASE);
	guise_unlock(s);
	guise_wake_napper(r);
	guise_additions_keep_up(s, slot, alone);

	/* Links that have just come are put in place first. */
	if (!guise_signals_deferred() && s->route == GUISE_DIRECT && !s->arrival.full)
		rang = sleep_on(s, slot, lead, devices, deadline, ps);

	if (!guise_lock(s, slot))
		return false;
	__atomic_store_n(&slot->word, GUISE_WORD_AWAY, __ATOMIC_RELEASE);
	slot->cpu = (uint32_t)sched_getcpu() + 1;
	end_waiting(r, slot);
	if (lead) {
		if (r->vcpu->leader == slot->id)
			r->vcpu->leader = 0;
	} else if (!in_background) {
		guise_unfollow(s, slot);
	}
	guise_quiet_bell(s, slot, rang);
	if (r->clock_mode == GUISE_CLOCK_REAL)
		guise_note_time(s);
	return !r->dead;
}
