// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls by number: through libc's syscall(), as libraries make those
 * that old libcs lack (libuv its sendmmsg, for one), and by instructions of the
 * program's own (trap.c). What has a hook goes to the hook; the rest is the
 * host's. io_uring is refused, as by a host that has none: its requests would
 * reach the host's kernel past every hook.
 *
 * Such a call is no cancellation point, whatever its hook is.
 */
#include "preload/raw/trap.h"

#include "host/probe.h"
#include "host/signal.h"
#include "host/sys.h"
#include "preload/files/place.h"
#include "preload/wait/waiting.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define IO_URING_SETUP 425 /* on every processor; old headers lack it */

/* Socket calls. True if nr is one; its result is in *ret. */
static bool socket_call(long nr, const struct preload_arguments *x, long *ret)
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

static bool transfer_call(long nr, const struct preload_arguments *x, long *ret)
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

static bool file_call(long nr, const struct preload_arguments *x, long *ret)
{
	switch (nr) {
	case SYS_openat:
		*ret = openat((int)x->a, (const char *)x->b, (int)x->c, (mode_t)x->d);
		return true;
	case SYS_lseek:
		*ret = lseek((int)x->a, (off_t)x->b, (int)x->c);
		return true;
	case SYS_newfstatat:
		*ret = fstatat((int)x->a, (const char *)x->b, (void *)x->c, (int)x->d);
		return true;
	case SYS_statx:
		*ret = statx((int)x->a, (const char *)x->b, (int)x->c, (unsigned int)x->d,
			     (void *)x->e);
		return true;
	case SYS_faccessat:
		*ret = faccessat((int)x->a, (const char *)x->b, (int)x->c, 0);
		return true;
	case SYS_readlinkat:
		*ret = readlinkat((int)x->a, (const char *)x->b, (void *)x->c, (size_t)x->d);
		return true;
#ifdef SYS_open
	case SYS_access:
		*ret = access((const char *)x->a, (int)x->b);
		return true;
	case SYS_readlink:
		*ret = readlink((const char *)x->a, (void *)x->b, (size_t)x->c);
		return true;
#endif
	default:
		return false;
	}
}

/*
 * Those for which libc makes a newer call: only what is the stack's goes to the hook, and the
 * host is asked for the very number. A program with a filter relies on it: Chromium's handler of
 * SIGSYS answers newfstatat by fstat, and would be called for its own answer for ever.
 */
static bool older_file_call(long nr, const struct preload_arguments *x, long *ret)
{
#ifdef SYS_open
	struct preload_place place;
	int fd;
#endif

	switch (nr) {
	case SYS_fstat:
		if (preload_file((int)x->a) < 0 && !preload_own_fd((int)x->a))
			return false;
		*ret = fstat((int)x->a, (void *)x->b);
		return true;
#ifdef SYS_open
	case SYS_open:
		if (!preload_instead(AT_FDCWD, (const char *)x->a, (int)x->b, (mode_t)x->c, &fd))
			return false;
		*ret = fd;
		return true;
	case SYS_stat:
	case SYS_lstat:
		if (!preload_place(AT_FDCWD, (const char *)x->a, &place))
			return false;
		*ret = nr == SYS_stat ? stat((const char *)x->a, (void *)x->b)
				      : lstat((const char *)x->a, (void *)x->b);
		return true;
#endif
	default:
		return false;
	}
}

static bool descriptor_call(long nr, const struct preload_arguments *x, long *ret)
{
	switch (nr) {
	case SYS_getdents64:
		*ret = getdents64((int)x->a, (void *)x->b, (size_t)x->c);
		return true;
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
static long pselect_by_number(const struct preload_arguments *x)
{
	const struct {
		const sigset_t *mask;
		size_t size;
	} *six = (const void *)x->f;

	if (six && guise_readable(six, sizeof(*six)))
		return libc_result(-EFAULT);
	return pselect((int)x->a, (void *)x->b, (void *)x->c, (void *)x->d, (void *)x->e,
		       six ? six->mask : NULL);
}

static bool wait_call(long nr, const struct preload_arguments *x, long *ret)
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

/* ---- signals: the kernel's structures ------------------------------------- */

struct kernel_action {
	sighandler_t handler;
	unsigned long flags;
	void (*restorer)(void); /* x86-64 and arm64 have one, others not */
	unsigned long mask;
};

static long sigaction_by_number(const struct preload_arguments *x)
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

/* True if nr concerns signals; its result is in *ret. */
static bool signal_call(long nr, const struct preload_arguments *x, long *ret)
{
	sigset_t copy;

	switch (nr) {
	case SYS_rt_sigaction:
		*ret = sigaction_by_number(x);
		return true;
	case SYS_rt_sigprocmask:
		if (x->d == KERNEL_SIGSET && x->a != SIG_UNBLOCK)
			*ret = host_sys(nr, x->a, preload_allowed_mask((void *)x->b, &copy), x->c,
					KERNEL_SIGSET);
		else
			*ret = host_sys(nr, x->a, x->b, x->c, x->d);
		return true;
	case SYS_rt_sigsuspend:
		*ret = host_sys(nr, preload_allowed_mask((void *)x->a, &copy), x->b);
		return true;
	default:
		return false;
	}
}

/* Process and thread. As libc returns it. */
static bool process_call(long nr, const struct preload_arguments *x, long *ret)
{
	switch (nr) {
	case SYS_seccomp:
		/* Without a filter it is a question: whether the host has them. */
		if (x->a == SECCOMP_SET_MODE_STRICT || (x->a == SECCOMP_SET_MODE_FILTER && x->c))
			preload_sandbox();
		return false;
	case SYS_prctl:
		*ret = prctl((int)x->a, x->b, x->c, x->d, x->e);
		return true;
	case SYS_ptrace:
		if (x->a != PTRACE_TRACEME && x->a != PTRACE_ATTACH && x->a != PTRACE_SEIZE)
			return false;
		*ret = ptrace((enum __ptrace_request)x->a, (pid_t)x->b, (void *)x->c, (void *)x->d);
		return true;
	case SYS_exit_group:
		preload_leave_quietly();
		return false;
#ifdef SYS_fork
	case SYS_fork:
		*ret = fork();
		return true;
#endif
	case SYS_clone:
		if (x->a & CLONE_VM || x->b)
			return false;
		/* As fork, when it asks for nothing more: with libc's own handlers. */
		*ret = x->a == SIGCHLD
			       ? fork()
			       : libc_result(preload_raw_fork(nr, (const long[]){ x->a, x->b, x->c,
										  x->d, x->e }));
		return true;
	case PRELOAD_CLONE3:
		if (!preload_clone3_forks(x->a, x->b))
			return false;
		*ret = libc_result(preload_raw_fork(nr, (const long[]){ x->a, x->b, 0, 0, 0 }));
		return true;
	case SYS_execve:
		*ret = execve((const char *)x->a, (void *)x->b, (void *)x->c);
		return true;
	case SYS_execveat:
		*ret = execveat((int)x->a, (const char *)x->b, (void *)x->c, (void *)x->d,
				(int)x->e);
		return true;
	default:
		return false;
	}
}

static bool hooked(long nr, const struct preload_arguments *x, long *ret)
{
	return socket_call(nr, x, ret) || transfer_call(nr, x, ret) || file_call(nr, x, ret) ||
	       older_file_call(nr, x, ret) || descriptor_call(nr, x, ret) ||
	       wait_call(nr, x, ret) || process_call(nr, x, ret);
}

long preload_by_number(long nr, const struct preload_arguments *x)
{
	int state;
	long ret;

	if (nr == IO_URING_SETUP)
		return -ENOSYS;
	if (signal_call(nr, x, &ret))
		return ret;
	errno = 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!hooked(nr, x, &ret))
		ret = host_sys(nr, x->a, x->b, x->c, x->d, x->e, x->f);
	else if (ret == -1 && errno)
		ret = -errno;
	pthread_setcancelstate(state, NULL);
	return ret;
}

HOOK long syscall(long nr, ...)
{
	struct preload_arguments x;
	va_list ap;
	int saved;
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
	if (preload.ticket < 0 || preload_without_storage())
		return HOST(syscall)(nr, x.a, x.b, x.c, x.d, x.e, x.f);
	saved = errno;
	ret = preload_by_number(nr, &x);
	errno = saved;
	return libc_result(ret);
}
