// SPDX-License-Identifier: GPL-2.0-only
/*
 * What both sides of a ring do (ring.h): map it, wait for the other side's word, and wake it.
 *
 * Before it sleeps, a thread spins for as long as that has been worth it lately, at most
 * GUISE_LANE_SPIN_NS: the other side's thread is then on another processor, and answers within
 * microseconds.
 */
#include "served/ring.h"

#include "host/signal.h"
#include "host/sys.h"
#include "isa/isa.h"
#include "region/vcpu.h"

#include <sys/mman.h>

#define LEAST_NS (GUISE_LANE_SPIN_NS / 32)
#define LOOKS    64 /* between two looks at the clock */

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

bool guise_lane_spin(const uint32_t *word, uint32_t old, uint32_t *spin)
{
	uint64_t until = guise_host_now() + *spin;

	do {
		for (int i = 0; i < LOOKS; i++) {
			if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old) {
				if (*spin < GUISE_LANE_SPIN_NS)
					*spin *= 2;
				return true;
			}
			guise_isa_relax();
		}
	} while (guise_host_now() < until && !guise_signals_deferred());
	if (*spin > LEAST_NS)
		*spin /= 2;
	return false;
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
