// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaving a stack. A member's task ends here; what else its process had in the
 * stack ends when the holder sees the control channel hang up. In the process
 * that created the stack there is nothing left afterwards.
 */
#include "host/sys.h"
#include "region/additions.h"
#include "region/call.h"
#include "region/pump.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/vcpu.h"
#include "served/client.h"

#include <stdlib.h>
#include <sys/single_threaded.h>

static void close_own(int *fd)
{
	if (*fd >= 0)
		host_sys(SYS_close, *fd);
	*fd = -1;
}

void guise_stack_close(struct guise_stack *s)
{
	int *own[] = { &s->control,  &s->memfd, &s->monitor_fd,
		       &s->image_fd, &s->alive, &s->pump_bell };
	unsigned int i, k;

	for (i = 0; i < GUISE_MAX_LINKS; i++) {
		struct guise_link_port *port = &s->port[i];

		if (port->backend)
			port->backend->detach(port);
		port->backend = NULL;
		for (k = 0; k < GUISE_LINK_FDS; k++)
			close_own(&port->fd[k]);
	}
	guise_additions_close(s);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		close_own(own[i]);
	for (i = 0; i < GUISE_BELLS; i++)
		close_own(&s->bell[i]);
}

void guise_stack_free(struct guise_stack *s)
{
	if (s->region)
		guise_region_unmap(s);
	if (s->served)
		guise_served_close(s->served);
	guise_stack_close(s);
	guise_slots_drop(s);
}

void guise_leave(struct guise_stack *s)
{
	struct guise_slot *slot;

	if (s->served) {
		guise_slots_leave(s);
		guise_stack_free(s);
		return;
	}
	slot = guise_slot_find(s);

	guise_pump_stop(s);
	guise_slots_leave(s);
	if (slot) {
		guise_call_exit(s, slot);
		guise_slot_give(s, slot);
		guise_slot_forget(s);
	}
	guise_stacks_remove(s);
	guise_stack_free(s);
}

void guise_abandon(struct guise_stack *s)
{
	s->pump_running = false;
	s->known = s->threads_ending = 0;
	guise_slots_forked();
	guise_stacks_remove(s);
	guise_stack_free(s);
}

/*
 * exit_group(), exec and a deadly signal kill the process's other threads
 * wherever they are; one inside would leave the stack in the middle of a change.
 * So the thread that is about to end the process sets s->ending, and then takes the
 * virtual CPU once. By then a thread that was inside has left. One that takes the virtual
 * CPU later sees s->ending before it enters the image, and waits (call.c). If it is killed
 * at that moment it owns the virtual CPU without being inside, which is mended (bury.c).
 */
static struct guise_slot *slot_to_end_with(struct guise_stack *s)
{
	struct guise_slot *slot = guise_slot_find(s);

	if (slot)
		return slot;
	if (!s->end_slot)
		s->end_slot = guise_slot_take(s, s->proc);
	return s->end_slot;
}

void guise_leave_quietly(void)
{
	struct guise_stack *s;

	if (__libc_single_threaded)
		return;
	for (s = guise_stacks(); s; s = s->next) {
		uint32_t nobody = 0;
		struct guise_slot *slot;

		if (s->creator)
			continue;
		slot = slot_to_end_with(s);
		if (!slot)
			continue;
		__atomic_compare_exchange_n(&s->ending, &nobody, (uint32_t)slot->tid, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		if (guise_lock(s, slot))
			guise_unlock(s);
	}
}

void guise_stay_after_all(void)
{
	struct guise_stack *s;

	for (s = guise_stacks(); s; s = s->next) {
		uint32_t me = (uint32_t)host_sys(SYS_gettid);

		if (!__atomic_compare_exchange_n(&s->ending, &me, 0, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
			continue;
		guise_futex_wake(&s->ending, 0x7fffffff);
		if (s->end_slot)
			guise_slot_give(s, s->end_slot);
		s->end_slot = NULL;
	}
}

static void (*leave_at_end)(void) = guise_leave_quietly;

void guise_leave_at_end(void (*leave)(void))
{
	leave_at_end = leave;
}

static void process_ends(void)
{
	leave_at_end();
}

static void process_exits(int status, void *unused)
{
	(void)status;
	(void)unused;
	process_ends();
}

/*
 * exit() calls first the functions that were registered last. One of them is the loader's, which
 * calls all destructors. Constructors of libraries run before that one is registered. So a
 * function that a constructor registers, bound to no library, is called after the last
 * destructor. Until then other threads work on, because a destructor may stop and join them.
 *
 * If a program is linked with libguise.a, or loads libguise.so while it runs, destructors of other
 * libraries run later than that: one that waits for a thread which makes a call waits for ever.
 */
__attribute__((constructor(101))) static void await_end(void)
{
	on_exit(process_exits, NULL);
	at_quick_exit(process_ends);
}
