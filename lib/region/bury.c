// SPDX-License-Identifier: GPL-2.0-only
/*
 * The death of a member.
 *
 * When the holder hears of it, none of the process's threads runs any more,
 * and what they were doing in the stack stands still:
 *
 *	owning the virtual CPU	not inside the image: the holder becomes the owner, mends
 *				what the host side keeps (guise_take_over) and gives it
 *				up. Inside the image: the region is in the middle of a
 *				change. A holder that traces the process has finished the
 *				change before the process was dead (finish.c); otherwise
 *				nobody can, and the stack is lost
 *	waiting for it		the counts of waiting and starving threads may be too
 *				high: they begin anew
 *	having just given it up	it alone knew some wake-ups: all threads are woken
 *	waiting in the stack	as leader, as follower, with a bell rung for it: these
 *				entries are removed, and the reaper in the port ends its
 *				tasks
 *
 * Only the owner of the virtual CPU may change these entries. The holder's thread that
 * hears of deaths must not wait for the virtual CPU: its owner may be dead as well, and
 * this thread would never hear of that. So it leaves the work to the pump.
 */
#include "region/bury.h"

#include "region/bell.h"
#include "region/pump.h"
#include "region/vcpu.h"
#include "region/wait.h"

void guise_take_over(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;

	r->vcpu->carrier = slot->id;
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++)
		if (guise_link_live(s, i) && s->port[i].backend && s->port[i].backend->flush)
			__atomic_fetch_or(&r->vcpu->tx_held, 1u << i, __ATOMIC_RELAXED);
	guise_wait_mend(s);
	r->vcpu->finished++;
	guise_unlock(s);
}

static void bury(struct guise_stack *s, unsigned int proc)
{
	struct guise_region *r = s->region;
	bool wakes_lost = false;

	for (unsigned int i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) != proc + 1)
			continue;
		if (r->vcpu->leader == i)
			r->vcpu->leader = 0;
		if (slot->follows)
			guise_unfollow(s, slot);
		wakes_lost |= slot->delivering;
		guise_bell_leave(r, slot);
		/* One that waits is not counted as busy. */
		if (slot->task && !slot->waiting)
			__atomic_sub_fetch(&r->online, 1, __ATOMIC_SEQ_CST);
	}
	if (wakes_lost)
		guise_wait_mend(s);
	__atomic_store_n(&r->procs[proc].dead, 1, __ATOMIC_RELEASE);
	__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_REAP, __ATOMIC_SEQ_CST);
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
	uint32_t owner = guise_lock_owner(r);

	if (owner && s->slots[owner].proc == proc) {
		if (__atomic_load_n(&r->vcpu->entered, __ATOMIC_ACQUIRE)) {
			guise_declare_dead(s);
			return;
		}
		guise_take_over(s, &s->slots[owner]);
	}
	__atomic_store_n(&r->vcpu->waiting, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&r->vcpu->starving, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&r->vcpu->napping, 0, __ATOMIC_RELAXED);
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
