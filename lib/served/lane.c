// SPDX-License-Identifier: GPL-2.0-only
/*
 * What both sides of a ring do (ring.h): map it, wait for the other side's word, and wake it.
 *
 * Before it sleeps, a thread spins for as long as that has been worth it lately, at most
 * GUISE_LANE_SPIN_NS. The other side's thread is then on another processor, and answers within
 * microseconds; or it waits for this one's: so the spinning thread offers its processor each few
 * hundred nanoseconds (sched_yield). Where a program moves much data, four threads share the
 * processors: it, its servant, and the same two at the other end. None of them may keep a
 * processor from another one, and to sleep and be woken each time costs more than the copies.
 *
 * Where other programs need the processors, who offers one gets it back after their time slice,
 * of some milliseconds. Who sleeps is preferred when it is woken. So a thread that was away for
 * SLICE_NS spins for SHORT_NS at most and offers nothing for the next waits: 64 of them, and four
 * times as many at each time that it happens again.
 */
#include "served/ring.h"

#include "host/signal.h"
#include "host/sys.h"
#include "isa/isa.h"
#include "region/vcpu.h"

#include <sys/mman.h>

#define SHORT_NS 20000u
#define LEAST_NS (SHORT_NS / 32)
#define SLICE_NS 500000u
#define MOST     65536u
#define LOOKS    16 /* between two looks at the clock */

int guise_ring_map(int fd, struct guise_ring **ring)
{
	long at = host_sys(SYS_mmap, 0, GUISE_RING_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at < 0)
		return (int)at;
	*ring = (struct guise_ring *)at;
	return 0;
}

void guise_ring_unmap(struct guise_ring *ring)
{
	host_sys(SYS_munmap, ring, GUISE_RING_SIZE);
}

void guise_ring_call_servant(struct guise_ring *ring)
{
	__atomic_add_fetch(&ring->bell, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&ring->bell, 1);
}

/* Others have had the processor. */
static void found_crowded(struct guise_lane_spin *spin)
{
	spin->crowded = spin->next;
	if (spin->next < MOST)
		spin->next *= 4;
	spin->ns = SHORT_NS;
}

static void was_worth_it(struct guise_lane_spin *spin)
{
	if (spin->crowded)
		spin->crowded--;
	else if (spin->next > 64)
		spin->next--;
	if (spin->ns < (spin->crowded ? SHORT_NS : GUISE_LANE_SPIN_NS))
		spin->ns *= 2;
}

static void was_not(struct guise_lane_spin *spin)
{
	if (spin->crowded)
		spin->crowded--;
	if (spin->ns > LEAST_NS)
		spin->ns /= 2;
}

bool guise_lane_spin(struct guise_lane_spin *spin, const uint32_t *word, uint32_t old, bool yields)
{
	uint64_t now = guise_host_now(), before;

	spin->since = now;
	do {
		for (int i = 0; i < LOOKS; i++) {
			if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old) {
				was_worth_it(spin);
				return true;
			}
			guise_isa_relax();
		}
		before = now;
		if (yields && !spin->crowded)
			host_sys(SYS_sched_yield);
		now = guise_host_now();
		if (now - before > SLICE_NS) {
			found_crowded(spin);
			return __atomic_load_n(word, __ATOMIC_ACQUIRE) != old;
		}
	} while (now - spin->since < spin->ns && !guise_signals_deferred());
	was_not(spin);
	return false;
}

/* Without this, threads that sleep would go on to, for being woken takes longer than the answer. */
void guise_lane_slept(struct guise_lane_spin *spin)
{
	if (!spin->crowded && guise_host_now() - spin->since < GUISE_LANE_SPIN_NS)
		spin->ns = GUISE_LANE_SPIN_NS;
}

void guise_lane_ring(struct guise_lane *lane, int bell)
{
	const uint64_t one = 1;
	uint32_t polls = GUISE_LANE_SLEEPS;

	__atomic_add_fetch(&lane->event, 1, __ATOMIC_SEQ_CST);
	if (__atomic_compare_exchange_n(&lane->polls, &polls, GUISE_LANE_RUNG, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		host_sys(SYS_write, bell, &one, sizeof(one));
}
