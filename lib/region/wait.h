/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting for the stack: leaders, followers, and their wake-ups. */
#ifndef GUISE_REGION_WAIT_H
#define GUISE_REGION_WAIT_H

#include "region/bell.h"
#include "region/stack.h"

/* Host descriptors that a call waits for besides the stack. */
struct guise_pollset {
	struct pollfd *fds;
	unsigned int n;
	int ready; /* how many have revents; -1: the call has not waited */
};

/* This process can move the link's frames, and there is something to move them to. */
static inline bool guise_link_live(const struct guise_stack *s, unsigned int i)
{
	return s->region->links[i].used && !s->region->links[i].lost && s->port[i].fd[0] >= 0;
}

/* Wake-ups to be made once the virtual CPU is free. */
struct guise_wakes {
	bool any;
	unsigned int n;
	struct guise_bell_set bells;
	uint32_t *word[16];
};

/* Holding the virtual CPU: turns kicked slots, a leader whose deadline moved,
 * and an empty leader's place into wake-ups. */
void guise_collect_wakes_slow(struct guise_stack *s, struct guise_wakes *wakes);
void guise_deliver_wakes(struct guise_stack *s, struct guise_wakes *wakes);

/* The leader sleeps, and does not watch for room on a link that has frames to send. */
static inline bool guise_leader_must_poll(const struct guise_region *r)
{
	return r->vcpu->leader &&
	       __atomic_load_n(&r->vcpu->tx_blocked, __ATOMIC_RELAXED) & ~r->vcpu->leader_tx;
}

/* When the leader has to look at the clock. */
static inline uint64_t guise_leader_deadline(const struct guise_region *r)
{
	return r->vcpu->bell_again < r->vcpu->next_event ? r->vcpu->bell_again
							 : r->vcpu->next_event;
}

static inline void guise_collect_wakes(struct guise_stack *s, struct guise_wakes *wakes)
{
	struct guise_region *r = s->region;

	wakes->any = false;
	if (__builtin_expect(r->vcpu->kick_head ||
				     (r->vcpu->leader &&
				      guise_leader_deadline(r) < r->vcpu->leader_until) ||
				     guise_leader_must_poll(r) ||
				     (!r->vcpu->leader &&
				      (r->vcpu->wait_head ||
				       r->vcpu->pump_word == GUISE_PUMP_SLEEPS)),
			     0))
		guise_collect_wakes_slow(s, wakes);
}

/*
 * Holding the virtual CPU, with this slot's task asleep in the stack: gives
 * it up, waits until there may be something to do, takes it again, and leaves
 * what happened in irq_pending and the slot. False when the stack is lost.
 */
bool guise_wait(struct guise_stack *s, struct guise_slot *slot, struct guise_pollset *ps);

/* Sleeps for devices, this slot's bell (NULL: none) and (until deadline) the clock; sets
 * irq_pending. Returns the bell that rang, or GUISE_NO_BELL. Not holding the virtual CPU. */
int guise_poll_devices(struct guise_stack *s, const struct guise_slot *slot, uint64_t deadline,
		       bool devices, struct guise_pollset *ps);

/*
 * Holding the virtual CPU: makes the list of followers anew and wakes all waiting threads.
 * For when a thread has died that may have been changing the list or making wake-ups.
 */
void guise_wait_mend(struct guise_stack *s);

/* Holding the virtual CPU: wakes the waiting threads that were stopped and are continued now
 * (slot->still). */
void guise_wake_continued(struct guise_stack *s);

/* Holding the virtual CPU: takes a slot out of that list. */
void guise_unfollow(struct guise_stack *s, struct guise_slot *slot);

/* From now on this thread's waits leave the lead to others. Only in a process with
 * a pump. */
void guise_wait_in_background(void);

/* Marks in irq_pending what the clock says. */
void guise_note_time(struct guise_stack *s);

/* The slot's thread looks again, should it wait. May be called at any moment of a thread. */
void guise_wait_interrupt(struct guise_stack *s, struct guise_slot *slot);

/* The threads of a process that wait look at what they wait for anew: links have been added or
 * removed, or have come to the process. */
#define GUISE_EVERY_PROC ~0u
void guise_wait_look(struct guise_stack *s, uint32_t proc);

#endif
