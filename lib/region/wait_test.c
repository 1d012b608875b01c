// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits, of a region without a kernel: who is woken by what.
 */
#include "region/wait.h"

#include "host/sys.h"
#include "region/bell.h"
#include "region/vcpu.h"

#include "test/region.h"
#include "test/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define EVENT_NS 2000000ull /* until the kernel's next timer */

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
	guise_wait(&stack, w->slot, &w->set);
	guise_unlock(&stack);
	__atomic_store_n(&w->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void begin(struct waiter *w, unsigned int slot, int silent, pthread_t *thread)
{
	w->slot = &stack.slots[slot];
	w->slot->used = 1;
	w->silent = (struct pollfd){ .fd = silent, .events = POLLIN };
	w->set = (struct guise_pollset){ .fds = &w->silent, .n = 1 };
	if (pthread_create(thread, NULL, waits, w))
		abort();
	while (__atomic_load_n(&w->slot->word, __ATOMIC_SEQ_CST) != GUISE_WORD_POLL)
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
	return tap_end();
}
