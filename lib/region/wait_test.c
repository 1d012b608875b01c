// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits, of a region without a kernel: who is woken by what.
 */
#include "region/wait.h"

#include "host/sys.h"
#include "region/bell.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include "test/region.h"
#include "test/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define EVENT_NS 2000000ull /* until the kernel's next timer */
#define WAITS    100        /* while the pump stands by */

#define PUMP_SLOT 6

static struct guise_host_ops ops;
static struct guise_stack stack;

static uint64_t host_clock(struct guise_host_ops *self, uint32_t which)
{
	(void)self;
	(void)which;
	return guise_host_now();
}

static void make_stack(void)
{
	test_region(&stack);
	stack.region->vcpu->pump_alive = 1;
	ops.clock = host_clock;
	stack.ops = &ops;
	tap_done(guise_bells_make(&stack, GUISE_BELLS_FIRST), "bells are made");
}

struct waiter {
	struct guise_slot *slot;
	struct guise_pollset set;
	struct pollfd silent;
	uint32_t ended;
};

/* Waits for the stack and for a descriptor on which nothing comes. */
static void *waits(void *arg)
{
	struct waiter *w = arg;

	guise_lock(&stack, w->slot);
	guise_wait(&stack, w->slot, w->set.n ? &w->set : NULL);
	guise_unlock(&stack);
	__atomic_store_n(&w->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* silent: -1 for none. */
static void begin(struct waiter *w, unsigned int slot, int silent, pthread_t *thread)
{
	const uint32_t asleep = silent < 0 ? GUISE_WORD_FUTEX : GUISE_WORD_POLL;

	w->slot = &stack.slots[slot];
	w->slot->used = 1;
	w->silent = (struct pollfd){ .fd = silent, .events = POLLIN };
	w->set = (struct guise_pollset){ .fds = &w->silent, .n = silent >= 0 };
	if (pthread_create(thread, NULL, waits, w))
		abort();
	while (__atomic_load_n(&w->slot->word, __ATOMIC_SEQ_CST) != asleep)
		usleep(100);
}

/* As the port does. */
static void kick(struct guise_slot *slot)
{
	struct guise_slot *self = &stack.slots[7];

	guise_lock(&stack, self);
	slot->kicked = 1;
	slot->kick_next = stack.region->vcpu->kick_head;
	stack.region->vcpu->kick_head = slot->id;
	guise_unlock(&stack);
}

static void the_clock_is_the_leaders(void)
{
	struct waiter leader = { 0 }, follower = { 0 };
	pthread_t thread[2];
	int silent[2];

	if (pipe(silent))
		abort();
	begin(&leader, 1, silent[0], &thread[0]);
	/* No unlock sees it: none tells the leader that its deadline has moved. */
	stack.region->vcpu->leader_until = 0;
	stack.region->vcpu->next_event = guise_host_now() + EVENT_NS;
	begin(&follower, 2, silent[0], &thread[1]);
	tap(stack.region->vcpu->leader == 1 && follower.slot->follows,
	    "of two that wait one leads, and one follows");
	usleep(10 * EVENT_NS / 1000);
	tap(!__atomic_load_n(&follower.ended, __ATOMIC_SEQ_CST),
	    "the time of a timer passes, and the one that follows sleeps on");
	stack.region->vcpu->next_event = ~0ull;
	kick(follower.slot);
	pthread_join(thread[1], NULL);
	tap(follower.ended, "it wakes when it is kicked");
	kick(leader.slot);
	pthread_join(thread[0], NULL);
	tap(leader.ended && !stack.region->vcpu->leader, "so does the leader");
	tap(!stack.region->vcpu->bells_taken[0], "nobody has a bell any more");
}

static void a_leader_does_without_a_pump_that_does_not_look(void)
{
	struct guise_vcpu *vcpu = stack.region->vcpu;
	struct waiter leader = { 0 };
	pthread_t thread;
	int alive[2];

	vcpu->next_event = vcpu->pump_until = guise_host_now() + EVENT_NS;
	begin(&leader, 1, -1, &thread);
	tap(vcpu->leader_timeless, "a pump that stands by has the clock");
	pthread_join(thread, NULL);
	tap(leader.ended && vcpu->irq_pending & GUISE_IRQ_TIMER,
	    "it does not look: the leader wakes, late, for the timer");
	tap(!vcpu->pump_until && vcpu->pump_alive, "and the next leader has the clock itself");

	if (pipe(alive))
		abort();
	close(alive[1]);
	stack.alive = alive[0];
	leader.ended = 0;
	vcpu->next_event = vcpu->pump_until = guise_host_now() + EVENT_NS;
	begin(&leader, 1, -1, &thread);
	pthread_join(thread, NULL);
	tap(!vcpu->pump_alive, "a pump that is gone with its holder is known to be");
	close(alive[0]);
	stack.alive = -1;
	stack.holder_gone = false;
	vcpu->pump_alive = 1;
	vcpu->next_event = ~0ull;
	vcpu->irq_pending = 0;
}

static void timer_passes(struct guise_slot *slot)
{
	(void)slot;
	stack.region->vcpu->irq_pending = 0;
	stack.region->vcpu->next_event = guise_host_now() + EVENT_NS / 4;
}

static uint32_t with_timer; /* waits for which a timer of the host was needed */

static void *waits_often(void *arg)
{
	struct waiter *w = arg;

	guise_lock(&stack, w->slot);
	for (int left = WAITS; left;) {
		bool stands = stack.region->vcpu->pump_until;

		guise_wait(&stack, w->slot, NULL);
		left -= stands;
		with_timer += stands && !stack.region->vcpu->leader_timeless;
	}
	guise_unlock(&stack);
	__atomic_store_n(&w->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void a_pump_that_stands_by_has_the_clock(void)
{
	struct waiter w = { .slot = &stack.slots[1] };
	pthread_t thread;

	stack.resume = timer_passes;
	stack.region->vcpu->pump_slot = PUMP_SLOT;
	timer_passes(NULL);
	if (guise_pump_start(&stack) || pthread_create(&thread, NULL, waits_often, &w))
		abort();
	while (!__atomic_load_n(&w.ended, __ATOMIC_SEQ_CST)) {
		kick(w.slot);
		usleep(50);
	}
	pthread_join(thread, NULL);
	guise_pump_stop(&stack);
	tap(!with_timer, "leaders arm no timer while the pump has one for the same event");
	stack.region->vcpu->next_event = ~0ull;
	stack.region->vcpu->pump_alive = 1;
}

static uint32_t enough;

/* As the tracer does, without the virtual CPU. */
static void *stops_and_continues(void *arg)
{
	struct guise_slot *slot = arg;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		__atomic_store_n(&slot->still, GUISE_STILL, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->still, GUISE_CONTINUED, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void a_follower_may_be_stopped_at_any_time(void)
{
	struct guise_slot *self = &stack.slots[7], *follower = &stack.slots[2];
	pthread_t thread;

	stack.region->vcpu->pump_alive = 0;
	stack.region->vcpu->wait_head = 2;
	follower->follows = 1;
	if (pthread_create(&thread, NULL, stops_and_continues, follower))
		abort();
	for (unsigned int i = 0; i < 2000000; i++) {
		guise_lock(&stack, self);
		guise_unlock(&stack);
	}
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	guise_unfollow(&stack, follower);
	follower->still = GUISE_CONTINUED;
	stack.region->vcpu->pump_alive = 1;
	tap(!stack.region->vcpu->wait_head, "the next leader may be stopped while it is chosen");
}

int main(void)
{
	make_stack();
	the_clock_is_the_leaders();
	a_follower_may_be_stopped_at_any_time();
	a_leader_does_without_a_pump_that_does_not_look();
	a_pump_that_stands_by_has_the_clock();
	return tap_end();
}
