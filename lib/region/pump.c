// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pump: devices and timers while no thread of a program waits inside.
 *
 * It has three states, in pump_word, so that a busy program hardly ever pays for it:
 *
 *	leads	0: no thread waited for a while; the pump sleeps in ppoll(2) like any leader
 *	stands	2: threads begin and end waits all the time. The pump looks at the stack each
 *		millisecond, and at the clock when an event is due. So a program's thread that
 *		leads meanwhile can sleep without a timer, which would cost the host as much
 *		as the sleep itself
 *	sleeps	1: a program's thread leads; when that thread stops leading and no other one
 *		takes its place, it wakes the pump
 *
 * A pump that is woken from `sleeps` stands for a while: so a program that waits and works
 * ten thousand times a second wakes it no more than a thousand times. A frame that arrives
 * while all threads compute waits for the pump's next look at most.
 *
 * The pump takes the place of a leader that does not do its work: at once when the
 * leader's thread was stopped, which the tracer reports, and after GUISE_WATCH_NS when the
 * pump itself finds that frames and timers are not served, because the leader is frozen or
 * held by a debugger.
 */
#include "region/pump.h"

#include "host/signal.h"
#include "host/fd.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/bury.h"
#include "region/vcpu.h"
#include "region/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#define NEVER (~0ull)

#define GUISE_STANDBY_NS 1000000ull
#define GUISE_WATCH_NS   2000000000ull /* how often a leader is looked after */
#define GUISE_LATE_NS    10000000ull   /* for a timer */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t devices(struct guise_stack *s)
{
	uint32_t bits = 0;
	unsigned int i;

	for (i = 0; i < GUISE_MAX_LINKS; i++)
		if (guise_link_live(s, i))
			bits |= 1u << i;
	return bits;
}

/*
 * Holding the virtual CPU: gives it up and sleeps on pump_word, unless guise_pump_wake() was
 * called since this turn began. True when the time is over: GUISE_WATCH_NS, or less for a pump
 * that stands by. That looks at the clock for the leader, too: it wakes for the next event.
 */
static bool doze(struct guise_stack *s, uint32_t how)
{
	struct guise_region *r = s->region;
	uint64_t timeout = GUISE_WATCH_NS;

	r->vcpu->pump_until = 0;
	if (how == GUISE_PUMP_STANDS) {
		uint64_t now = s->ops->clock(s->ops, 0);
		uint64_t then = earlier(guise_leader_deadline(r), now + GUISE_STANDBY_NS);

		timeout = then > now ? then - now : 0;
		if (r->clock_mode == GUISE_CLOCK_REAL)
			r->vcpu->pump_until = then;
	}
	/* A pump that sleeps does not: the unlock wakes the leader if there is an event. */
	if (r->vcpu->leader && r->vcpu->leader_timeless)
		r->vcpu->leader_until = r->vcpu->pump_until ? r->vcpu->pump_until : NEVER;
	__atomic_store_n(&r->vcpu->pump_word, how, __ATOMIC_SEQ_CST);
	guise_unlock(s);
	return !__atomic_load_n(&s->pump_poked, __ATOMIC_SEQ_CST) &&
	       guise_futex_wait(&r->vcpu->pump_word, how, timeout) == -ETIMEDOUT;
}

/* Whether another thread is the leader and does not work. watched: no wait began or ended for
 * GUISE_WATCH_NS. */
static bool leader_absent(struct guise_stack *s, bool watched)
{
	struct guise_region *r = s->region;
	struct guise_slot *leader = &s->slots[r->vcpu->leader];

	if (!r->vcpu->leader || r->vcpu->leader == r->vcpu->pump_slot)
		return false;
	if (__atomic_load_n(&leader->still, __ATOMIC_RELAXED) == GUISE_STILL)
		return true;
	if (!watched)
		return false;
	guise_poll_devices(s, NULL, 0, true, NULL);
	return __atomic_load_n(&leader->word, __ATOMIC_RELAXED) == GUISE_WORD_KICKED ||
	       __atomic_load_n(&r->vcpu->rx_pending, __ATOMIC_RELAXED) ||
	       (r->vcpu->next_event != NEVER &&
		s->ops->clock(s->ops, 0) > r->vcpu->next_event + GUISE_LATE_NS);
}

static void *pump(void *arg)
{
	struct guise_stack *s = arg;
	struct guise_region *r = s->region;
	struct guise_slot *slot = &s->slots[r->vcpu->pump_slot];
	/* Not by a bell, which another thread may share and empty first. */
	struct pollfd poke = { .fd = s->pump_bell, .events = POLLIN };
	struct guise_pollset own = { &poke, 1, 0 };
	uint64_t deadline, count;
	bool watched = false;
	uint32_t last = 0;
	sigset_t all;

	sigfillset(&all);
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	r->vcpu->pump_alive = 1;
	while (guise_lock(s, slot)) {
		int rang;

		if (__atomic_load_n(&s->pump_stop, __ATOMIC_ACQUIRE)) {
			r->vcpu->pump_alive = 0;
			r->vcpu->pump_until = 0;
			guise_unlock(s);
			break;
		}
		if (__atomic_exchange_n(&s->pump_poked, false, __ATOMIC_SEQ_CST))
			guise_wake_continued(s);
		r->pump_turns++;
		guise_bury_pending(s);
		guise_note_time(s);
		s->resume(slot);
		if (leader_absent(s, watched))
			r->vcpu->leader = 0;
		watched = false;
		if (r->vcpu->leader && r->vcpu->leader != slot->id) {
			/* Leaders come and go: to be woken for each would cost more. */
			bool busy = r->vcpu->activity != last;

			last = r->vcpu->activity;
			watched = doze(s, busy ? GUISE_PUMP_STANDS : GUISE_PUMP_SLEEPS) && !busy;
			continue;
		}
		if (r->vcpu->activity != last) {
			uint32_t bits = devices(s);

			last = r->vcpu->activity;
			doze(s, GUISE_PUMP_STANDS);
			if (bits) {
				__atomic_or_fetch(&r->vcpu->rx_pending, bits, __ATOMIC_RELAXED);
				__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_RX,
						  __ATOMIC_RELEASE);
				/* Nobody polls for room, either: try. */
				__atomic_or_fetch(&r->vcpu->tx_held,
						  __atomic_load_n(&r->vcpu->tx_blocked,
								  __ATOMIC_RELAXED),
						  __ATOMIC_RELAXED);
			}
			continue;
		}
		deadline = guise_leader_deadline(r);
		r->vcpu->leader = slot->id;
		r->vcpu->leader_until = deadline;
		r->vcpu->leader_timeless = 0;
		r->vcpu->pump_until = 0;
		r->vcpu->leader_tx = __atomic_load_n(&r->vcpu->tx_blocked, __ATOMIC_RELAXED);
		r->vcpu->pump_word = GUISE_PUMP_AWAKE;
		guise_bell_take(s, slot);
		__atomic_store_n(&slot->word, GUISE_WORD_POLL, __ATOMIC_RELEASE);
		guise_unlock(s);
		rang = guise_poll_devices(s, slot, deadline, true, &own);
		if (rang >= 0)
			guise_empty_bell(s, slot, (unsigned int)rang);
		if (own.ready)
			host_sys(SYS_read, s->pump_bell, &count, sizeof(count));
		if (!guise_lock(s, slot))
			break;
		__atomic_store_n(&slot->word, GUISE_WORD_AWAY, __ATOMIC_RELEASE);
		guise_quiet_bell(s, slot, rang);
		if (r->vcpu->leader == slot->id)
			r->vcpu->leader = 0;
		guise_unlock(s);
	}
	return NULL;
}

int guise_pump_start(struct guise_stack *s)
{
	int err;

	s->pump_bell = guise_fd_high((int)host_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (s->pump_bell < 0)
		return guise_fail(-s->pump_bell, "no eventfd for the pump: %s",
				  strerror(-s->pump_bell));
	err = pthread_create(&s->pump, NULL, pump, s);
	if (err)
		return guise_fail(err, "the pump thread cannot be started: %s", strerror(err));
	s->pump_running = true;
	return 0;
}

void guise_pump_wake(struct guise_stack *s)
{
	const uint64_t one = 1;

	__atomic_store_n(&s->pump_poked, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->region->vcpu->pump_word, GUISE_PUMP_AWAKE, __ATOMIC_SEQ_CST);
	guise_futex_wake(&s->region->vcpu->pump_word, 1);
	if (s->pump_bell >= 0)
		host_sys(SYS_write, s->pump_bell, &one, sizeof(one));
}

void guise_pump_stop(struct guise_stack *s)
{
	if (!s->pump_running)
		return;
	__atomic_store_n(&s->pump_stop, true, __ATOMIC_RELEASE);
	guise_pump_wake(s);
	pthread_join(s->pump, NULL);
	s->pump_running = false;
}
