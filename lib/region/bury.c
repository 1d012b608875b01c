// SPDX-License-Identifier: GPL-2.0-only
/*
 * The death of a member.
 *
 * When the holder hears of it, none of the process's threads runs any more,
 * and what they were doing in the stack stands still:
 *
 *	owning the virtual CPU	the region is in the middle of a change that
 *				nobody can finish: the stack is lost
 *	waiting for it		nothing is left but a count of starving waiters,
 *				which may be too high: it begins anew
 *	waiting in the stack	as leader, as follower, with a bell rung for it:
 *				its places are taken away, its tasks are for the
 *				reaper in the port
 *
 * The places may only be touched by who holds the virtual CPU, and the holder's
 * thread that hears of deaths must not wait for that (its owner may be dead,
 * too, and it would not hear of it): it leaves the work to the pump.
 */
#include "region/bury.h"

#include "region/pump.h"
#include "region/vcpu.h"

static uint32_t lock_owner(const struct guise_region *r)
{
	return __atomic_load_n(&r->lock, __ATOMIC_ACQUIRE) &
	       ~(GUISE_LOCK_CONTENDED | GUISE_LOCK_RESERVED);
}

static void leave_followers(struct guise_stack *s, unsigned int proc)
{
	struct guise_region *r = s->region;
	struct guise_slot *slot;

	for (uint32_t id = r->wait_head; id; id = slot->wait_next) {
		slot = &s->slots[id];
		if (slot->proc != proc)
			continue;
		if (slot->wait_prev)
			s->slots[slot->wait_prev].wait_next = slot->wait_next;
		else
			r->wait_head = slot->wait_next;
		if (slot->wait_next)
			s->slots[slot->wait_next].wait_prev = slot->wait_prev;
	}
}

static void bury(struct guise_stack *s, unsigned int proc)
{
	struct guise_region *r = s->region;

	leave_followers(s, proc);
	for (unsigned int i = 1; i < GUISE_MAX_SLOTS; i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) || slot->proc != proc)
			continue;
		if (r->leader == i)
			r->leader = 0;
		if (slot->belled) {
			slot->belled = 0;
			r->bell_pending--;
		}
		/* One that waits is not counted as busy. */
		if (slot->task && !slot->waiting)
			__atomic_sub_fetch(&r->online, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&r->procs[proc].dead, 1, __ATOMIC_RELEASE);
	__atomic_or_fetch(&r->irq_pending, GUISE_IRQ_REAP, __ATOMIC_SEQ_CST);
}

void guise_bury_pending(struct guise_stack *s)
{
	for (unsigned int i = 0; i < GUISE_MAX_PROCS / 32; i++) {
		uint32_t bits;

		if (!__atomic_load_n(&s->burials[i], __ATOMIC_RELAXED))
			continue;
		bits = __atomic_exchange_n(&s->burials[i], 0, __ATOMIC_ACQUIRE);
		for (; bits; bits &= bits - 1)
			bury(s, i * 32 + (unsigned int)__builtin_ctz(bits));
	}
}

bool guise_bury_unfinished(struct guise_stack *s)
{
	for (unsigned int i = 0; i < GUISE_MAX_PROCS / 32; i++)
		if (__atomic_load_n(&s->burials[i], __ATOMIC_RELAXED) && !s->region->dead) {
			guise_pump_wake(s);
			return true;
		}
	return false;
}

void guise_bury(struct guise_stack *s, unsigned int proc)
{
	struct guise_region *r = s->region;
	uint32_t owner = lock_owner(r);

	if (owner && s->slots[owner].proc == proc) {
		guise_declare_dead(s);
		return;
	}
	__atomic_store_n(&r->starving, 0, __ATOMIC_RELAXED);
	__atomic_or_fetch(&s->burials[proc / 32], 1u << (proc % 32), __ATOMIC_RELEASE);
	if (s->pump_running) {
		guise_pump_wake(s);
	} else {
		struct guise_slot *slot = guise_slot(s);

		if (slot && guise_lock(s, slot)) {
			guise_bury_pending(s);
			guise_unlock(s);
		}
	}
}
