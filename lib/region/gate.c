// SPDX-License-Identifier: GPL-2.0-only
/*
 * How one thread of a process changes the way in which all its threads call a stack
 * (served/change.c): for a moment none of them is inside, and none enters.
 *
 * A call enters with guise_inside_enter(), and looks at s->route after that. Who closes the gate
 * sets s->route, makes each processor see it (membarrier(2)), and then looks which threads are
 * inside: each slot of this process says where its thread counts that. Those that sleep in the
 * stack are woken; their calls end as by a signal, with what they have done so far, and are
 * made again on the other side of the gate if they have done nothing. So no data is lost or sent
 * twice. A time that such a call was to wait begins anew.
 *
 * A thread that has no slot yet takes one under GUISE_LOCK_SLOTS, which who closes the gate has,
 * as it has all locks.
 *
 * Limits: a thread that is stopped (SIGSTOP, a debugger), or that waits in another stack, does not
 * come out. It is awaited for PATIENCE_NS. Then the change is made all the same, because rights
 * depend on it, and such a thread fails when it goes on.
 */
#include "region/gate.h"

#include "host/probe.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/vcpu.h"
#include "region/wait.h"

#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#include <time.h>

#define PATIENCE_NS 2000000000ull
#define MOMENT_NS   50000

__thread bool guise_gate_mine __attribute__((tls_model("initial-exec")));

/* What this thread has written is seen by all others of the process, and they have seen it before
 * what they do next. */
static void fence_all(void)
{
	const struct timespec long_enough = { 0, 10000000 };

	if (!host_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0))
		return;
	if (!host_sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) &&
	    !host_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0))
		return;
	/* Before Linux 4.14, or in a container that refuses it. */
	if (host_sys(SYS_membarrier, MEMBARRIER_CMD_SHARED, 0))
		host_sys(SYS_nanosleep, &long_enough, NULL);
}

/* The thread may have ended without giving its slot back, and its memory may be gone. */
static bool is_inside(const struct guise_slot *slot)
{
	const volatile int *inside = (const volatile int *)(uintptr_t)slot->inside;

	return inside && !guise_readable((const void *)(uintptr_t)slot->inside, sizeof(*inside)) &&
	       *inside && !host_sys(SYS_tgkill, host_sys(SYS_getpid), slot->tid, 0);
}

static bool others_are_inside(struct guise_stack *s)
{
	const int32_t me = (int32_t)host_sys(SYS_gettid);
	bool found = false;

	for (uint32_t i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) != s->proc + 1 ||
		    slot->tid == me || !is_inside(slot))
			continue;
		guise_wait_interrupt(s, slot);
		found = true;
	}
	return found;
}

bool guise_gate_close(struct guise_stack *s)
{
	const struct timespec moment = { 0, MOMENT_NS };
	uint64_t deadline;

	guise_gate_mine = true;
	__atomic_store_n(&s->route, GUISE_ROUTE_CHANGES, __ATOMIC_SEQ_CST);
	if (__libc_single_threaded)
		return true;
	fence_all();
	deadline = guise_host_now() + PATIENCE_NS;
	while (others_are_inside(s)) {
		if (guise_host_now() > deadline)
			return false;
		host_sys(SYS_nanosleep, &moment, NULL);
	}
	return true;
}

void guise_gate_open(struct guise_stack *s, enum guise_route route)
{
	__atomic_store_n(&s->route, route, __ATOMIC_SEQ_CST);
	guise_gate_mine = false;
	guise_futex_wake(&s->route, 0x7fffffff);
}

void guise_gate_pass(struct guise_stack *s)
{
	while (!guise_gate_mine &&
	       __atomic_load_n(&s->route, __ATOMIC_ACQUIRE) == GUISE_ROUTE_CHANGES)
		guise_futex_wait(&s->route, GUISE_ROUTE_CHANGES, ~0ull);
}
