/* SPDX-License-Identifier: GPL-2.0-only */
/* The virtual CPU of a stack: a fair lock that host threads carry. */
#ifndef GUISE_REGION_VCPU_H
#define GUISE_REGION_VCPU_H

#include "region/stack.h"

#define GUISE_LOCK_CONTENDED 0x80000000u
#define GUISE_LOCK_RESERVED  0x40000000u

/* False when the stack is lost; then nothing is held. */
bool guise_lock_slow(struct guise_stack *s, struct guise_slot *slot);

/* Whether the holder has ended; a system call. */
bool guise_holder_gone(struct guise_stack *s);
void guise_unlock(struct guise_stack *s);
/* Wakes a thread that naps (vcpu.c). For a thread that is about to sleep and leaves its
 * processor free. */
void guise_wake_napper_slow(struct guise_region *r);
static inline void guise_wake_napper(struct guise_region *r)
{
	if (__builtin_expect(__atomic_load_n(&r->vcpu->napping, __ATOMIC_RELAXED), 0))
		guise_wake_napper_slow(r);
}

static inline bool guise_lock(struct guise_stack *s, struct guise_slot *slot)
{
	struct guise_region *r = s->region;
	uint32_t expected = 0;

	if (__builtin_expect(!__atomic_compare_exchange_n(&r->vcpu->lock, &expected, slot->id, 0,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
			     0)) {
		if (!guise_lock_slow(s, slot))
			return false;
	}
	r->vcpu->carrier = slot->id;
	return true;
}

/* The slot that owns the virtual CPU, or 0. */
static inline uint32_t guise_lock_owner(const struct guise_region *r)
{
	return __atomic_load_n(&r->vcpu->lock, __ATOMIC_ACQUIRE) &
	       ~(GUISE_LOCK_CONTENDED | GUISE_LOCK_RESERVED);
}

/* Declares the stack lost, and wakes all threads that wait for it. */
void guise_declare_dead(struct guise_stack *s);

/* CLOCK_MONOTONIC of the host, nanoseconds. */
uint64_t guise_host_now(void);

/* futex(2) on a word of the region; timeout in ns from now, ~0: none. */
long guise_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout);
void guise_futex_wake(uint32_t *word, int count);

#endif
