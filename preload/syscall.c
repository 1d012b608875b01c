// SPDX-License-Identifier: GPL-2.0-only
/*
 * syscall(2): libraries that want a call which old libcs lack make it by its
 * number (libuv its sendmmsg, for one). What has a hook goes to the hook; the
 * rest is the host's. io_uring is refused, as by a host that has none: its
 * requests would reach the host's kernel past every hook.
 *
 * sigaction by number stays the host's: its structures are the kernel's, and
 * only runtimes without libc use it.
 */
#include "preload.h"

#include <stdarg.h>
#include <sys/syscall.h>

#define IO_URING_SETUP 425 /* on every processor; old headers lack it */

struct arguments {
	long a, b, c, d, e, f;
};

/* Socket calls. True if nr is one; its result is in *ret. */
static bool socket_call(long nr, const struct arguments *x, long *ret)
{
	switch (nr) {
	case SYS_socket:
		*ret = socket((int)x->a, (int)x->b, (int)x->c);
		return true;
	case SYS_socketpair:
		*ret = socketpair((int)x->a, (int)x->b, (int)x->c, (int *)x->d);
		return true;
	case SYS_bind:
		*ret = bind((int)x->a, (const void *)x->b, (socklen_t)x->c);
		return true;
	case SYS_connect:
		*ret = connect((int)x->a, (const void *)x->b, (socklen_t)x->c);
		return true;
	case SYS_listen:
		*ret = listen((int)x->a, (int)x->b);
		return true;
	case SYS_accept:
		*ret = accept((int)x->a, (void *)x->b, (void *)x->c);
		return true;
	case SYS_accept4:
		*ret = accept4((int)x->a, (void *)x->b, (void *)x->c, (int)x->d);
		return true;
	case SYS_shutdown:
		*ret = shutdown((int)x->a, (int)x->b);
		return true;
	case SYS_getsockname:
		*ret = getsockname((int)x->a, (void *)x->b, (void *)x->c);
		return true;
	case SYS_getpeername:
		*ret = getpeername((int)x->a, (void *)x->b, (void *)x->c);
		return true;
	case SYS_getsockopt:
		*ret = getsockopt((int)x->a, (int)x->b, (int)x->c, (void *)x->d, (void *)x->e);
		return true;
	case SYS_setsockopt:
		*ret = setsockopt((int)x->a, (int)x->b, (int)x->c, (void *)x->d, (socklen_t)x->e);
		return true;
	default:
		return false;
	}
}

static bool transfer_call(long nr, const struct arguments *x, long *ret)
{
	switch (nr) {
	case SYS_read:
		*ret = read((int)x->a, (void *)x->b, (size_t)x->c);
		return true;
	case SYS_write:
		*ret = write((int)x->a, (void *)x->b, (size_t)x->c);
		return true;
	case SYS_readv:
		*ret = readv((int)x->a, (void *)x->b, (int)x->c);
		return true;
	case SYS_writev:
		*ret = writev((int)x->a, (void *)x->b, (int)x->c);
		return true;
	case SYS_sendto:
		*ret = sendto((int)x->a, (void *)x->b, (size_t)x->c, (int)x->d, (void *)x->e,
			      (socklen_t)x->f);
		return true;
	case SYS_recvfrom:
		*ret = recvfrom((int)x->a, (void *)x->b, (size_t)x->c, (int)x->d, (void *)x->e,
				(void *)x->f);
		return true;
	case SYS_sendmsg:
		*ret = sendmsg((int)x->a, (void *)x->b, (int)x->c);
		return true;
	case SYS_recvmsg:
		*ret = recvmsg((int)x->a, (void *)x->b, (int)x->c);
		return true;
	case SYS_sendmmsg:
		*ret = sendmmsg((int)x->a, (void *)x->b, (unsigned int)x->c, (int)x->d);
		return true;
	case SYS_recvmmsg:
		*ret = recvmmsg((int)x->a, (void *)x->b, (unsigned int)x->c, (int)x->d,
				(void *)x->e);
		return true;
	case SYS_preadv2:
		*ret = preadv64v2((int)x->a, (void *)x->b, (int)x->c, x->d, (int)x->f);
		return true;
	case SYS_pwritev2:
		*ret = pwritev64v2((int)x->a, (void *)x->b, (int)x->c, x->d, (int)x->f);
		return true;
	case SYS_sendfile:
		*ret = sendfile64((int)x->a, (int)x->b, (void *)x->c, (size_t)x->d);
		return true;
	case SYS_splice:
		*ret = splice((int)x->a, (void *)x->b, (int)x->c, (void *)x->d, (size_t)x->e,
			      (unsigned int)x->f);
		return true;
	default:
		return false;
	}
}

static bool descriptor_call(long nr, const struct arguments *x, long *ret)
{
	switch (nr) {
	case SYS_close:
		*ret = close((int)x->a);
		return true;
#ifdef SYS_close_range
	case SYS_close_range:
		*ret = close_range((unsigned int)x->a, (unsigned int)x->b, (int)x->c);
		return true;
#endif
	case SYS_dup:
		*ret = dup((int)x->a);
		return true;
#ifdef SYS_dup2
	case SYS_dup2:
		*ret = dup2((int)x->a, (int)x->b);
		return true;
#endif
	case SYS_dup3:
		*ret = dup3((int)x->a, (int)x->b, (int)x->c);
		return true;
	case SYS_fcntl:
		*ret = fcntl((int)x->a, (int)x->b, x->c);
		return true;
	case SYS_ioctl:
		*ret = ioctl((int)x->a, (unsigned long)x->b, x->c);
		return true;
	default:
		return false;
	}
}

/* pselect6 takes its mask by address and size, in a structure. */
static long pselect_by_number(const struct arguments *x)
{
	const struct {
		const sigset_t *mask;
		size_t size;
	} *six = (const void *)x->f;

	return pselect((int)x->a, (void *)x->b, (void *)x->c, (void *)x->d, (void *)x->e,
		       six ? six->mask : NULL);
}

static bool wait_call(long nr, const struct arguments *x, long *ret)
{
	switch (nr) {
#ifdef SYS_poll
	case SYS_poll:
		*ret = poll((void *)x->a, (nfds_t)x->b, (int)x->c);
		return true;
	case SYS_select:
		*ret = select((int)x->a, (void *)x->b, (void *)x->c, (void *)x->d, (void *)x->e);
		return true;
	case SYS_epoll_create:
		*ret = epoll_create((int)x->a);
		return true;
	case SYS_epoll_wait:
		*ret = epoll_wait((int)x->a, (void *)x->b, (int)x->c, (int)x->d);
		return true;
#endif
	case SYS_ppoll:
		*ret = ppoll((void *)x->a, (nfds_t)x->b, (void *)x->c, (void *)x->d);
		return true;
	case SYS_pselect6:
		*ret = pselect_by_number(x);
		return true;
	case SYS_epoll_create1:
		*ret = epoll_create1((int)x->a);
		return true;
	case SYS_epoll_ctl:
		*ret = epoll_ctl((int)x->a, (int)x->b, (int)x->c, (void *)x->d);
		return true;
	case SYS_epoll_pwait:
		*ret = epoll_pwait((int)x->a, (void *)x->b, (int)x->c, (int)x->d, (void *)x->e);
		return true;
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
		*ret = epoll_pwait2((int)x->a, (void *)x->b, (int)x->c, (void *)x->d, (void *)x->e);
		return true;
#endif
	default:
		return false;
	}
}

HOOK long syscall(long nr, ...)
{
	struct arguments x;
	va_list ap;
	long ret;

	va_start(ap, nr);
	x.a = va_arg(ap, long);
	x.b = va_arg(ap, long);
	x.c = va_arg(ap, long);
	x.d = va_arg(ap, long);
	x.e = va_arg(ap, long);
	x.f = va_arg(ap, long);
	va_end(ap);

	/* Nothing is set up for other numbers: malloc is among the callers. */
	if ((nr == SYS_socket || nr == IO_URING_SETUP) && !preload_on_stack())
		return HOST(syscall)(nr, x.a, x.b, x.c, x.d, x.e, x.f);
	if (nr == IO_URING_SETUP) {
		errno = ENOSYS;
		return -1;
	}
	if (preload.ticket >= 0 && (socket_call(nr, &x, &ret) || transfer_call(nr, &x, &ret) ||
				    descriptor_call(nr, &x, &ret) || wait_call(nr, &x, &ret)))
		return ret;
	return HOST(syscall)(nr, x.a, x.b, x.c, x.d, x.e, x.f);
}
