// SPDX-License-Identifier: GPL-2.0-only
/* prctl(2), where it sets what guise has to know of: filters, tracers, traps of system calls. */
#include "preload/preload.h"
#include "preload/raw/trap.h"
#include "region/stack.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

void preload_trap_not_seen(void)
{
	if (preload.stack)
		guise_count(preload.stack, GUISE_COUNT_UNTRAPPED, 1);
}

HOOK int prctl(int option, ...)
{
	long b, c, d, e;
	va_list ap;
	int ret;

	va_start(ap, option);
	b = va_arg(ap, long);
	c = va_arg(ap, long);
	d = va_arg(ap, long);
	e = va_arg(ap, long);
	va_end(ap);
	/* Without a filter it is a question: whether the host has them. */
	if (unlikely(option == PR_SET_SECCOMP) && (b != SECCOMP_MODE_FILTER || c))
		preload_sandbox();
	if (unlikely(option == PR_SET_PTRACER) && b)
		preload_let_go();
	ret = HOST(prctl)(option, b, c, d, e);
	if (unlikely(option == PR_SET_NO_NEW_PRIVS || option == PR_CAPBSET_DROP) && !ret)
		preload_give_up();
	if (unlikely(option == PR_SET_SYSCALL_USER_DISPATCH) && !ret && preload.stack)
		preload_trap_dispatch_changed(b);
	return ret;
}
