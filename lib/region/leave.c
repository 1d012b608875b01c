// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaving a stack. A member's task ends here; what else its process had in the
 * stack ends when the holder sees the control channel hang up. In the process
 * that created the stack there is nothing left afterwards.
 */
#include "host/sys.h"
#include "region/call.h"
#include "region/pump.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/vcpu.h"

#include <stdlib.h>
#include <time.h>

void guise_stack_free(struct guise_stack *s)
{
	const int own[] = { s->control, s->memfd, s->image_fd, s->bell, s->alive, s->pump_bell };
	unsigned int i, k;

	for (i = 0; i < GUISE_MAX_LINKS; i++) {
		struct guise_link_port *port = &s->port[i];

		if (port->backend)
			port->backend->detach(port);
		for (k = 0; k < GUISE_LINK_FDS; k++)
			if (port->fd[k] >= 0)
				host_sys(SYS_close, port->fd[k]);
	}
	if (s->region)
		guise_region_unmap(s);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] >= 0)
			host_sys(SYS_close, own[i]);
	free(s);
}

void guise_leave(struct guise_stack *s)
{
	struct guise_slot *slot = guise_slot_find(s);

	guise_pump_stop(s);
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
	guise_stacks_remove(s);
	guise_stack_free(s);
}

/*
 * exit_group() kills the process's other threads wherever they are; one that
 * owned the virtual CPU would take the stack with it. So from here on none of
 * them may take it, and when the lock was to be had twice, with a pause for who
 * was just about to take it, none of them has it.
 */
__attribute__((destructor)) static void process_ends(void)
{
	const struct timespec pause = { 0, 50000 };
	struct guise_stack *s;

	for (s = guise_stacks(); s; s = s->next) {
		struct guise_slot *slot = guise_slot_find(s);
		int times;

		if (!slot)
			slot = guise_slot_take(s, s->proc);
		if (s->creator || !slot)
			continue;
		__atomic_store_n(&s->ending, (int)host_sys(SYS_gettid), __ATOMIC_SEQ_CST);
		for (times = 0; times < 2; times++) {
			if (times)
				host_sys(SYS_nanosleep, &pause, NULL);
			if (guise_lock(s, slot))
				guise_unlock(s);
		}
	}
}
