// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that wait, made by number. They differ from libc's functions: a bad pointer to a time or
 * to a mask gives EFAULT (libc reads through some of them itself), a mask comes with its length,
 * and the rest of the time is written back to the program, if its memory can be written.
 *
 * A call that concerns only the host's descriptors goes to the host under the same number.
 */
#include "preload/raw/number.h"

#include "host/probe.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

#include <sys/epoll.h>
#include <sys/select.h>

/* A copy of a time-out; of may be NULL: for ever. */
static long time_of(const struct timespec *of, struct timespec *copy)
{
	if (!of)
		return 0;
	if (guise_readable(of, sizeof(*of)))
		return -EFAULT;
	*copy = *of;
	return preload_valid_time(copy) ? 0 : -EINVAL;
}

/* As the kernel does it: a time of 0 is not written, and one that cannot be written is no error. */
static void write_back(struct timespec *to, uint64_t deadline)
{
	if (to && deadline && deadline != FOREVER && !guise_writable(to, sizeof(*to)))
		*to = preload_time_left(deadline);
}

static long mask_of(const void *mask, long size)
{
	if (!mask)
		return 0;
	if (size != KERNEL_SIGSET)
		return -EINVAL;
	return guise_readable(mask, KERNEL_SIGSET);
}

long number_ppoll(const struct preload_arguments *x)
{
	struct preload_arguments on_host = *x;
	struct timespec *time = (void *)x->c, t;
	uint64_t deadline;
	sigset_t copy;
	long ret;

	if (!preload_polls_stack((void *)x->a, (nfds_t)x->b)) {
		on_host.d = (long)preload_allowed_mask((void *)x->d, &copy);
		return number_on_host(SYS_ppoll, &on_host);
	}
	ret = time_of(time, &t);
	if (!ret)
		ret = mask_of((void *)x->d, x->e);
	if (ret)
		return ret;
	deadline = preload_deadline(time ? &t : NULL);
	ret = AS_KERNEL(ppoll((void *)x->a, (nfds_t)x->b, time ? &t : NULL, (void *)x->d));
	write_back(time, deadline);
	return ret;
}

/* It takes its mask by address and size, in a structure. */
long number_pselect6(const struct preload_arguments *x)
{
	struct {
		const sigset_t *mask;
		long size;
	} six = { 0 };
	struct preload_arguments on_host = *x;
	struct timespec *time = (void *)x->e, t;
	int n = (int)x->a;
	uint64_t deadline;
	sigset_t copy;
	long ret;

	if (x->f && guise_readable((void *)x->f, sizeof(six)))
		return -EFAULT;
	if (x->f)
		__builtin_memcpy(&six, (void *)x->f, sizeof(six));
	if (!preload_selects_stack(&n, (void *)x->b, (void *)x->c, (void *)x->d)) {
		on_host.a = n;
		six.mask = preload_allowed_mask(six.mask, &copy);
		on_host.f = x->f ? (long)&six : 0;
		return number_on_host(SYS_pselect6, &on_host);
	}
	ret = time_of(time, &t);
	if (!ret)
		ret = mask_of(six.mask, six.size);
	if (ret)
		return ret;
	deadline = preload_deadline(time ? &t : NULL);
	ret = AS_KERNEL(
		pselect(n, (void *)x->b, (void *)x->c, (void *)x->d, time ? &t : NULL, six.mask));
	write_back(time, deadline);
	return ret;
}

#ifdef SYS_select
long number_select(const struct preload_arguments *x)
{
	struct timeval *time = (void *)x->e, copy;
	struct preload_arguments on_host = *x;
	int n = (int)x->a;
	long ret;

	if (!preload_selects_stack(&n, (void *)x->b, (void *)x->c, (void *)x->d)) {
		on_host.a = n;
		return number_on_host(SYS_select, &on_host);
	}
	if (time && guise_readable(time, sizeof(*time)))
		return -EFAULT;
	if (time)
		copy = *time;
	ret = AS_KERNEL(select(n, (void *)x->b, (void *)x->c, (void *)x->d, time ? &copy : NULL));
	if (time && (time->tv_sec || time->tv_usec) && !guise_writable(time, sizeof(*time)))
		*time = copy;
	return ret;
}
#endif

long number_epoll_pwait(const struct preload_arguments *x)
{
	long bad = mask_of((void *)x->e, x->f);

	return bad ? bad
		   : AS_KERNEL(epoll_pwait((int)x->a, (void *)x->b, (int)x->c, (int)x->d,
					   (void *)x->e));
}

long number_epoll_pwait2(const struct preload_arguments *x)
{
	struct timespec t;
	long bad = time_of((void *)x->d, &t);

	if (!bad)
		bad = mask_of((void *)x->e, x->f);
	return bad ? bad
		   : AS_KERNEL(epoll_pwait2((int)x->a, (void *)x->b, (int)x->c, x->d ? &t : NULL,
					    (void *)x->e));
}
