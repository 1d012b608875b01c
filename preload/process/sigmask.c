// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signal masks. Three signals are never put into them: SIGSEGV and SIGBUS, by which guise
 * learns that a pointer was bad (host/signal.c), and SIGSYS, by which it learns of a raw
 * system call (trap.c). If one of these came while it was blocked, the host would end the
 * program. libc keeps signals of its own out of masks in the same way.
 */
#include "preload/preload.h"

#include "host/probe.h"
#include "host/signal.h"
#include "preload/wait/waiting.h"

#include <signal.h>

const sigset_t *preload_allowed_mask(const sigset_t *set, sigset_t *copy)
{
	/* libc's sigset_t is longer than what the kernel knows of it. */
	if (!set || preload.ticket < 0 || guise_readable(set, KERNEL_SIGSET) ||
	    !(*(const unsigned long *)set & GUISE_UNBLOCKED))
		return set;
	sigemptyset(copy);
	*(unsigned long *)copy = *(const unsigned long *)set & ~GUISE_UNBLOCKED;
	return copy;
}

HOOK int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	if (how != SIG_UNBLOCK)
		set = preload_allowed_mask(set, &copy);
	return HOST(sigprocmask)(how, set, old);
}

HOOK int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	if (how != SIG_UNBLOCK)
		set = preload_allowed_mask(set, &copy);
	return HOST(pthread_sigmask)(how, set, old);
}

HOOK int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	return HOST(sigsuspend)(preload_allowed_mask(set, &copy));
}

HOOK int __sigsuspend(const sigset_t *set) SAME_AS(sigsuspend);
