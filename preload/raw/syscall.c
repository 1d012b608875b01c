// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls by number: through libc's syscall(), as libraries make those
 * that old libcs lack (libuv its sendmmsg, for one), and by instructions of the
 * program's own (trap.c). What has a hook goes to the hook, as the list of calls
 * says (calls.h); the rest is the host's. io_uring is refused, as by a host that has
 * none: its requests would reach the host's kernel past every hook.
 *
 * Such a call is no cancellation point, whatever its hook is.
 */
#include "preload/raw/number.h"

#include "host/probe.h"
#include "host/sys.h"
#include "preload/files/place.h"
#include "preload/isa/isa.h"

#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define P(x) ((void *)(x))

long number_on_host(long nr, const struct preload_arguments *x)
{
	return host_sys(nr, x->a, x->b, x->c, x->d, x->e, x->f);
}

void number_hook_begins(int *cancel_state)
{
	errno = 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
}

long number_hook_returned(long ret, int cancel_state)
{
	if (ret == -1 && errno)
		ret = -errno;
	pthread_setcancelstate(cancel_state, NULL);
	return ret;
}

/* ---- files ------------------------------------------------------------------------ */

/*
 * Older calls, in whose place libc makes newer ones. Only what concerns the stack goes to the
 * hook; for all else the host's call is made by the same number. A program with a filter relies
 * on that: Chromium's handler of SIGSYS answers newfstatat by fstat, and if that became a
 * newfstatat again, the handler would call itself for ever.
 */
long number_fstat(const struct preload_arguments *x)
{
	if (preload_file((int)x->a) < 0 && !preload_own_fd((int)x->a))
		return number_on_host(SYS_fstat, x);
	return AS_KERNEL(fstat((int)x->a, P(x->b)));
}

#ifdef SYS_open
long number_open(const struct preload_arguments *x)
{
	int fd;

	if (!preload_instead(AT_FDCWD, P(x->a), (int)x->b, (mode_t)x->c, &fd))
		return number_on_host(SYS_open, x);
	return fd < 0 ? -errno : fd;
}

long number_stat(const struct preload_arguments *x)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, P(x->a), &place))
		return number_on_host(SYS_stat, x);
	return AS_KERNEL(stat(P(x->a), P(x->b)));
}

long number_lstat(const struct preload_arguments *x)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, P(x->a), &place))
		return number_on_host(SYS_lstat, x);
	return AS_KERNEL(lstat(P(x->a), P(x->b)));
}
#endif

/* libc has no such call. With flags on how paths are to be resolved it goes to the host. */
long number_openat2(const struct preload_arguments *x)
{
	const struct open_how *how = P(x->c);
	int fd;

	if (x->d < (long)sizeof(*how) || guise_readable(how, sizeof(*how)) || how->resolve ||
	    !preload_instead((int)x->a, P(x->b), (int)how->flags, (mode_t)how->mode, &fd))
		return number_on_host(SYS_openat2, x);
	return fd < 0 ? -errno : fd;
}

/* ---- processes and threads -------------------------------------------------------- */

long number_seccomp(const struct preload_arguments *x)
{
	/* Without a filter it is a question: whether the host has them. */
	if (x->a == SECCOMP_SET_MODE_STRICT || (x->a == SECCOMP_SET_MODE_FILTER && x->c))
		preload_sandbox();
	return number_on_host(SYS_seccomp, x);
}

long number_ptrace(const struct preload_arguments *x)
{
	if (x->a != PTRACE_TRACEME && x->a != PTRACE_ATTACH && x->a != PTRACE_SEIZE)
		return number_on_host(SYS_ptrace, x);
	return AS_KERNEL(ptrace((enum __ptrace_request)x->a, (pid_t)x->b, P(x->c), P(x->d)));
}

long number_exit_group(const struct preload_arguments *x)
{
	preload_leave_quietly();
	return number_on_host(SYS_exit_group, x);
}

/* A clone that only asks for a fork is made by fork(), with libc's handlers. */
long number_clone(const struct preload_arguments *x)
{
	if (x->a & CLONE_VM || x->b)
		return number_on_host(SYS_clone, x);
	if (x->a == SIGCHLD)
		return AS_KERNEL(fork());
	return preload_raw_fork(SYS_clone, (const long[]){ x->a, x->b, x->c, x->d, x->e });
}

long number_clone3(const struct preload_arguments *x)
{
	if (!preload_clone3_forks(x->a, x->b))
		return number_on_host(SYS_clone3, x);
	return preload_raw_fork(SYS_clone3, (const long[]){ x->a, x->b, 0, 0, 0 });
}

/* Without AS_KERNEL(), which changes the thread's cancellation state: the child of a vfork uses its
 * parent's thread-local storage, and an exec that succeeds would not change it back. */
long number_execve(const struct preload_arguments *x)
{
	return execve(P(x->a), P(x->b), P(x->c)) ? -errno : 0;
}

long number_execveat(const struct preload_arguments *x)
{
	return execveat((int)x->a, P(x->b), P(x->c), P(x->d), (int)x->e) ? -errno : 0;
}

long number_io_uring_setup(const struct preload_arguments *x)
{
	(void)x;
	return -ENOSYS;
}

/* ---- any number ------------------------------------------------------------------- */

/*
 * Those that are a hook with these arguments. A pointer may be NULL where the declaration of libc's
 * function says that it never is: a system call answers EFAULT, and so does the hook.
 */
__attribute__((no_sanitize("nonnull-attribute"))) static bool
hooked(long nr, const struct preload_arguments *x, long *ret)
{
	const long a = x->a, b = x->b, c = x->c, d = x->d, e = x->e, f = x->f;

	switch (nr) {
#define NUMBER(number, call, arguments)           \
	case SYS_##number:                        \
		*ret = AS_KERNEL(call arguments); \
		return true;
#include "preload/calls.h"
	default:
		return false;
	}
}

long preload_by_number(long nr, const struct preload_arguments *x)
{
	long ret;

	switch (nr) {
#define DECODED(number, call) \
	case SYS_##number:    \
		return number_##number(x);
#include "preload/calls.h"
	default:
		return hooked(nr, x, &ret) ? ret : number_on_host(nr, x);
	}
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

	/* Other numbers must not set anything up here: malloc is among the callers. */
	if ((nr == SYS_socket || nr == SYS_io_uring_setup) && !preload_on_stack())
		return HOST(syscall)(nr, x.a, x.b, x.c, x.d, x.e, x.f);
	if (preload.ticket < 0 || preload_isa_without_storage())
		return HOST(syscall)(nr, x.a, x.b, x.c, x.d, x.e, x.f);
	saved = errno;
	ret = preload_by_number(nr, &x);
	errno = saved;
	return libc_result(ret);
}
