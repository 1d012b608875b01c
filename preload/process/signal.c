// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handlers of the program stand behind guise's own (host/signal.c), which
 * holds a signal back while its thread is inside the stack. So every call of
 * libc that installs one leads to guise_signal_action().
 *
 * sigaction() may be called by a handler, also by one that interrupted
 * sigaction(): all signals are blocked meanwhile, or the thread would wait for
 * a lock that it holds itself. In a vfork child the handlers' table is the
 * parent's, the dispositions are not: there the host's call does it alone. But the
 * signals that guise needs stay as they are, until it executes a program: Go's children
 * take all handlers away before that.
 */
#include "host/signal.h"
#include "host/sys.h"
#include "preload/preload.h"

#include <string.h>

/* The hooks of obsolete calls name them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define KERNEL_SIGSET 8 /* bytes of a signal set in system calls */

/* What siginterrupt() said of signals whose handler signal() installs. */
static sigset_t interrupting;

static bool is_needed(int sig)
{
	return sig > 0 && sig < NSIG && GUISE_UNBLOCKED >> (sig - 1) & 1;
}

HOOK int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	unsigned long all = ~0UL, before;
	int ret;

	if (!preload_on_stack())
		return HOST(sigaction)(sig, act, old);
	if (preload_borrowed() && (!act || !is_needed(sig)))
		return HOST(sigaction)(sig, act, old);
	if (preload_borrowed())
		act = NULL;
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET);
	ret = guise_signal_action(sig, act, old);
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, KERNEL_SIGSET);
	return ret;
}

HOOK int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
	SAME_AS(sigaction);

static sighandler_t install(int sig, sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER) && !sigismember(&act.sa_mask, sig))
		sigaddset(&act.sa_mask, sig);
	return sigaction(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

HOOK sighandler_t signal(int sig, sighandler_t handler)
{
	if (!preload_on_stack())
		return HOST(signal)(sig, handler);
	return install(sig, handler, sigismember(&interrupting, sig) == 1 ? 0 : SA_RESTART);
}

HOOK sighandler_t bsd_signal(int sig, sighandler_t handler) SAME_AS(signal);
HOOK sighandler_t ssignal(int sig, sighandler_t handler) SAME_AS(signal);

HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	if (!preload_on_stack())
		return HOST(sysv_signal)(sig, handler);
	return install(sig, handler, (int)SA_RESETHAND | SA_NODEFER);
}

HOOK sighandler_t __sysv_signal(int sig, sighandler_t handler) SAME_AS(sysv_signal);

HOOK int siginterrupt(int sig, int interrupt)
{
	struct sigaction act;

	if (!preload_on_stack())
		return HOST(siginterrupt)(sig, interrupt);
	if (sigaction(sig, NULL, &act))
		return -1;
	if (interrupt) {
		sigaddset(&interrupting, sig);
		act.sa_flags &= ~SA_RESTART;
	} else {
		sigdelset(&interrupting, sig);
		act.sa_flags |= SA_RESTART;
	}
	return sigaction(sig, &act, NULL);
}

/* System V: SIG_HOLD blocks the signal, anything else unblocks it. */
HOOK sighandler_t sigset(int sig, sighandler_t handler)
{
	struct sigaction act;
	sigset_t set, before;
	sighandler_t old;

	if (!preload_on_stack())
		return HOST(sigset)(sig, handler);
	sigemptyset(&set);
	if (sigaddset(&set, sig))
		return SIG_ERR;
	if (handler == SIG_HOLD) {
		if (sigaction(sig, NULL, &act) || sigprocmask(SIG_BLOCK, &set, &before))
			return SIG_ERR;
		old = act.sa_handler;
	} else {
		memset(&act, 0, sizeof(act));
		act.sa_handler = handler;
		if (sigaction(sig, &act, &act) || sigprocmask(SIG_UNBLOCK, &set, &before))
			return SIG_ERR;
		old = act.sa_handler;
	}
	return sigismember(&before, sig) ? SIG_HOLD : old;
}

HOOK int sigignore(int sig)
{
	struct sigaction act = { .sa_handler = SIG_IGN };

	return preload_on_stack() ? sigaction(sig, &act, NULL) : HOST(sigignore)(sig);
}
