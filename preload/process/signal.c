// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handlers of the program stand behind guise's own (host/signal.c), which
 * holds a signal back while its thread is inside the stack. So every call of
 * libc that installs one leads to guise_signal_action().
 *
 * A vfork child shares the table of handlers with its parent, and has dispositions of its
 * own. There only the host's call is made, except for the signals that guise needs: these
 * stay as they are until the child executes a program, because Go's children remove all
 * handlers before that.
 */
#include "host/signal.h"
#include "preload/preload.h"

#include <string.h>

/* The hooks of obsolete calls name them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* What siginterrupt() said of signals whose handler signal() installs. */
static unsigned long interrupting; /* a bit for each */

static bool is_needed(int sig)
{
	return sig > 0 && sig < NSIG && GUISE_UNBLOCKED >> (sig - 1) & 1;
}

HOOK int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	bool borrowed;

	if (!preload_on_stack())
		return HOST(sigaction)(sig, act, old);
	borrowed = preload_borrowed();
	if (borrowed && (!act || !is_needed(sig)))
		return HOST(sigaction)(sig, act, old);
	return guise_signal_action(sig, borrowed ? NULL : act, old);
}

HOOK int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
	SAME_AS(sigaction);

static unsigned long bit(int sig)
{
	return sig > 0 && sig < NSIG ? 1ul << (sig - 1) : 0;
}

static bool interrupts(int sig)
{
	return __atomic_load_n(&interrupting, __ATOMIC_RELAXED) & bit(sig);
}

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
	return install(sig, handler, interrupts(sig) ? 0 : SA_RESTART);
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
		__atomic_or_fetch(&interrupting, bit(sig), __ATOMIC_RELAXED);
		act.sa_flags &= ~SA_RESTART;
	} else {
		__atomic_and_fetch(&interrupting, ~bit(sig), __ATOMIC_RELAXED);
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
