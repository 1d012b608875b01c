// SPDX-License-Identifier: GPL-2.0-only
/* Signals by number: the kernel's structures, which are not libc's. */
#include "preload/raw/number.h"

#include "host/probe.h"
#include "host/signal.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

#include <string.h>

struct kernel_action {
	sighandler_t handler;
	unsigned long flags;
	void (*restorer)(void); /* x86-64 and arm64 have one, others not */
	unsigned long mask;
};

long number_rt_sigaction(const struct preload_arguments *x)
{
	const struct kernel_action *act = (const void *)x->b;
	struct kernel_action *old = (void *)x->c;
	struct sigaction new, was;

	if (x->d != KERNEL_SIGSET)
		return -EINVAL;
	if ((act && guise_readable(act, sizeof(*act))) ||
	    (old && guise_writable(old, sizeof(*old))))
		return -EFAULT;
	if (act) {
		memset(&new, 0, sizeof(new));
		new.sa_handler = act->handler;
		new.sa_flags = (int)act->flags;
		*(unsigned long *)&new.sa_mask = act->mask;
	}
	memset(&was, 0, sizeof(was));
	if (sigaction((int)x->a, act ? &new : NULL, &was))
		return -errno;
	if (old) {
		memset(old, 0, sizeof(*old));
		old->handler = was.sa_handler;
		old->flags = (unsigned int)was.sa_flags;
		old->mask = *(unsigned long *)&was.sa_mask;
		old->restorer = was.sa_restorer;
	}
	return 0;
}

long number_rt_sigprocmask(const struct preload_arguments *x)
{
	sigset_t copy;

	if (x->d != KERNEL_SIGSET || x->a == SIG_UNBLOCK)
		return number_on_host(SYS_rt_sigprocmask, x);
	return host_sys(SYS_rt_sigprocmask, x->a, preload_allowed_mask((void *)x->b, &copy), x->c,
			KERNEL_SIGSET);
}

long number_rt_sigsuspend(const struct preload_arguments *x)
{
	sigset_t copy;

	return host_sys(SYS_rt_sigsuspend, preload_allowed_mask((void *)x->a, &copy), x->b);
}
