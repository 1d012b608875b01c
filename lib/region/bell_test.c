// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bells, of a region without a kernel: which thread is woken by which, that none is lost where
 * several share one, and what one costs that never looks.
 */
#include "region/bell.h"

#include "test/region.h"
#include "test/tap.h"

#include <poll.h>

static struct guise_stack stack;
static struct guise_host_ops ops;
static uint64_t time_now = 1000;

static uint64_t clock_of_test(struct guise_host_ops *self, uint32_t which)
{
	(void)self;
	(void)which;
	return time_now;
}

static void make_stack(unsigned int bells)
{
	test_region(&stack);
	ops.clock = clock_of_test;
	stack.ops = &ops;
	tap_done(guise_bells_make(&stack, bells), "bells are made");
}

static struct guise_slot *sleeper(unsigned int i)
{
	stack.slots[i].used = 1;
	guise_bell_take(&stack, &stack.slots[i]);
	return &stack.slots[i];
}

static bool rings(unsigned int bell)
{
	struct pollfd p = { .fd = stack.bell[bell], .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* It wakes, if that bell rings. */
static bool wakes_by(struct guise_slot *slot, unsigned int bell)
{
	bool rang = rings(bell);

	if (rang)
		guise_empty_bell(&stack, slot, bell);
	guise_quiet_bell(&stack, slot, rang ? (int)bell : GUISE_NO_BELL);
	return rang;
}

static bool wakes(struct guise_slot *slot)
{
	return wakes_by(slot, slot->bell);
}

static void wake(struct guise_slot *slot)
{
	guise_ring_bell(&stack, guise_bell_owed(&stack, slot));
}

/* Nobody sleeps any more. */
static void all_awake(void)
{
	for (uint32_t i = 1; i < GUISE_MAX_SLOTS; i++)
		if (stack.slots[i].used)
			guise_bell_leave(stack.region, &stack.slots[i]);
}

static void one_for_each(void)
{
	struct guise_slot *a = sleeper(1), *b = sleeper(2);

	tap(a->bell != b->bell, "two sleepers have bells of their own");
	wake(a);
	tap(rings(a->bell) && !rings(b->bell), "one is woken, and the other sleeps on");
	tap(wakes(a) && !rings(a->bell), "it is quiet when that one has seen it");
	tap(!stack.region->vcpu->bell[a->bell].pending && !a->belled && !a->delivering,
	    "nothing is owed any more");
	tap(sleeper(1 + stack.region->bells)->bell == a->bell,
	    "a bell whose sleeper is awake is free for any other");
	tap(sleeper(1)->bell != a[stack.region->bells].bell,
	    "and the one that had it takes another");
	all_awake();
}

static void shared(void)
{
	struct guise_slot *a, *c, *d;
	uint32_t bells = 0;

	for (uint32_t i = 1; i <= stack.region->bells; i++)
		bells |= 1u << sleeper(i)->bell;
	tap(bells == (1u << stack.region->bells) - 1, "all bells have a sleeper");
	c = sleeper(1 + stack.region->bells);
	a = &stack.slots[1];
	while (a->bell != c->bell)
		a++;
	tap(a != c && stack.region->vcpu->bell[a->bell].sleepers == 2,
	    "more sleepers than bells share some");
	wake(a);
	d = sleeper(1 + 2 * stack.region->bells);
	tap(d->bell != a->bell,
	    "a thread that goes to sleep then shares another one, which does not ring");
	tap(wakes(c) && rings(a->bell), "the wrong one wakes first, and the bell rings again");
	tap(wakes(a) && !rings(a->bell), "the right one wakes, and the bell is quiet");
	all_awake();
	tap(!stack.region->vcpu->bells_taken[0] && !stack.region->vcpu->bell[a->bell].sleepers,
	    "no bell is taken when all are awake");
}

/* c shares the bell of a; its look is in vain. */
static void look_in_vain(struct guise_slot *a, struct guise_slot *c)
{
	c->bell = a->bell;
	guise_empty_bell(&stack, c, c->bell);
	guise_quiet_bell(&stack, c, (int)c->bell);
}

static void late(void)
{
	struct guise_slot *a = sleeper(1), *c = &stack.slots[1 + stack.region->bells];
	const struct guise_bell *bell = &stack.region->vcpu->bell[a->bell];
	int looks = 0;

	wake(a);
	for (; rings(a->bell) && looks < 1000; looks++, time_now += 100000)
		look_in_vain(a, c);
	tap(looks > 1 && looks < 1000, "one that never looks is late after %d looks of others",
	    looks);
	tap(bell->late == 1 && !bell->pending && stack.region->vcpu->bell_again > time_now,
	    "the bell is rung anew for it, later");
	time_now = stack.region->vcpu->bell_again;
	wakes(sleeper(2));
	tap(rings(a->bell) && bell->pending == 1, "by the thread that looks then");
	tap(wakes(a) && !rings(a->bell) && stack.region->vcpu->bell_again == ~0ull,
	    "it comes at last, and nobody is late");
	all_awake();
}

static void mended(void)
{
	struct guise_slot *a = sleeper(1), *b = sleeper(2);

	wake(a);
	wake(b);
	stack.region->vcpu->bell[a->bell].pending = 7;
	stack.region->vcpu->bell[b->bell].sleepers = 7;
	a->used = 0;
	guise_bell_mend(&stack);
	tap(!stack.region->vcpu->bell[a->bell].pending &&
		    stack.region->vcpu->bell[b->bell].pending == 1,
	    "after a death it is counted anew for which slots a bell rings");
	tap(!stack.region->vcpu->bell[a->bell].sleepers &&
		    stack.region->vcpu->bell[b->bell].sleepers == 1 &&
		    stack.region->vcpu->bells_taken[0] == 1ull << b->bell,
	    "and which slots have which bell");
	a->has_bell = 0;
	all_awake();
}

/* The thread that wakes them is of a process that has the first bells alone. */
static void later(void)
{
	struct guise_slot *a = &stack.slots[1], *b = &stack.slots[1 + GUISE_BELLS_FIRST];
	bool alone = true;

	tap_done(guise_bells_make(&stack, 3 * GUISE_BELLS_FIRST), "more bells are made");
	for (uint32_t i = 1; i <= 2 * GUISE_BELLS_FIRST; i++)
		alone = guise_bell_take(&stack, &stack.slots[i]) &&
			stack.slots[i].bell >= GUISE_BELLS_FIRST && alone;
	tap(alone, "each thread has one of its own, none of the first");
	stack.bells = GUISE_BELLS_FIRST;
	wake(a);
	tap(stack.bells_missed, "a process without the bell of a sleeper has missed it");
	tap(a->bell < GUISE_BELLS_FIRST && rings(a->bell), "and rings one of the first");
	tap(!guise_bell_take(&stack, &stack.slots[2]),
	    "its own threads are not alone on the first");
	stack.bells = 3 * GUISE_BELLS_FIRST;
	tap(guise_bell_first(b->bell) == a->bell && wakes_by(b, a->bell) && rings(a->bell),
	    "who hears that first has it rung again");
	tap(wakes(a) && !rings(a->bell), "until the right one has");
	tap(!a->belled && !stack.region->vcpu->bell[a->bell].pending, "nothing is owed any more");
	for (uint32_t i = 1; i <= 2 * GUISE_BELLS_FIRST; i++)
		guise_bell_leave(stack.region, &stack.slots[i]);
	tap(!stack.region->vcpu->bells_taken[0], "no bell is taken when all are awake");
}

/* All who sleep on a bell have to learn that the stack is lost. */
static void lost(void)
{
	struct guise_slot *a = sleeper(1);

	stack.region->dead = 1;
	guise_ring_bell(&stack, a->bell);
	guise_empty_bell(&stack, a, a->bell);
	tap(rings(a->bell), "the bells of a lost stack are never quiet");
	stack.region->dead = 0;
}

int main(void)
{
	make_stack(4);
	one_for_each();
	shared();
	late();
	mended();
	later();
	lost();
	return tap_end();
}
