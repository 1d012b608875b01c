// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signal masks for the length of a wait: ppoll, pselect, epoll_pwait.
 *
 * The host's kernel changes the mask and begins to wait in one step. Here the
 * thread first declares itself inside the stack, so that guise's handler holds
 * back the signals that the new mask lets through (host/signal.c). A held signal keeps
 * the thread from sleeping; so none is missed between the change and the wait.
 *
 * One thing differs from a host: when a signal and an event come together, the handler runs
 * although the call reports the event.
 */
#include "host/signal.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

void preload_mask_on(struct preload_mask *saved, const sigset_t *mask)
{
	sigset_t copy;

	saved->on = mask;
	if (!mask)
		return;
	guise_inside_enter();
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, preload_allowed_mask(mask, &copy), &saved->before,
		 KERNEL_SIGSET);
}

void preload_mask_off(struct preload_mask *saved)
{
	if (!saved->on)
		return;
	guise_inside_leave();
	guise_signals_deliver();
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &saved->before, 0, KERNEL_SIGSET);
}
