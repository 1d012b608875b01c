// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork.
 *
 * A child has the sockets of its parent. When the parent has private ones, its place
 * in the stack, with a copy of them, is made before the host's fork (region/heir.h),
 * and the table of descriptors is copied with them, in one step. The child then is a
 * member from its first instruction. It greets the holder, which does not answer.
 * The child of a process without private sockets is no member before it needs the
 * stack; then it joins anew.
 *
 * The handlers of pthread_atfork() do this, so that whatever forks inside libc
 * (daemon, forkpty) is seen, too. _Fork() and raw clone() have no such handlers, and
 * are hooked. All locks of guise's are held meanwhile (host/locks.c), and signals wait: a
 * handler in the child would use the parent's slot.
 *
 * Between the copy and the host's fork other threads of the parent may close a
 * descriptor, and open another one that gets its number. So the child of a process with
 * several threads looks at each number once, and removes entries whose number is not the
 * placeholder that the table names.
 *
 * When there is no place for another process, no memory, or no descriptor for the right to
 * the place, fork fails with EAGAIN or ENOMEM, as a host's does. In two cases the child is
 * made without a place instead: when libc forks inside, where fork cannot be made to fail,
 * and when the holder is gone, because otherwise no process could fork any more. The
 * child's table marks the parent's sockets stale: a call on one fails with EBADF, and a
 * sentence. The same holds for a child that was made by a system call that guise did not
 * see, from its first call into the stack on (region/slot.c); it then joins anew.
 */
#include "preload/preload.h"

#include "host/locks.h"
#include "host/probe.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/heir.h"
#include "region/slot.h"
#include "region/stack.h"
#include "preload/raw/trap.h"
#include "preload/wait/waiting.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/single_threaded.h>

static struct guise_heir heir = { .end = -1 };
static __thread struct guise_heir early = { .end = -1 }; /* fork() has it before its handlers */
static struct guise_fdmap *without; /* what a child without a place knows of descriptors */
static bool alone;                  /* the process has one thread */

static bool keep(int fd, uint32_t entry)
{
	if (!without)
		without = guise_fdmap_new(&preload_local);
	return without && !guise_fdmap_set(without, &preload_local, fd, entry, 0);
}

/* The table of a child that is not in the stack. */
static void remember(void)
{
	int fd = -1;

	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0) {
		uint32_t entry = guise_fdmap_get(preload.map, fd);

		if (entry & (GUISE_FD_PRIVATE | GUISE_FD_STALE))
			entry = GUISE_FD_STALE;
		else /* the host's half of an epoll is the child's, too */
			entry &= GUISE_FD_EPOLL | GUISE_FD_HOSTED;
		if (entry && !keep(fd, entry))
			preload_say("no memory for the table of the child's descriptors");
	}
}

/* Whether this process has private descriptors, or epolls with a private half. */
static bool has_private(void)
{
	bool found = false;
	int fd = -1;

	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0) {
		preload_mark_shared(fd);
		found |= guise_fdmap_get(preload.map, fd) & (GUISE_FD_PRIVATE | GUISE_FD_HALF);
	}
	return found;
}

/* A place for the child, where it needs one: 0 or -errno. */
static int place_for_child(struct guise_heir *of)
{
	of->end = -1;
	if (!preload.stack || preload_borrowed() || !has_private())
		return 0;
	return guise_heir_prepare(preload.stack, preload.ticket, of, NULL, 0, preload.stack_nudge);
}

/* 0, or -errno where fork may fail and is to. */
static int prepare(bool may_fail)
{
	int saved = errno, err = 0;

	guise_own_fork_prepare();
	alone = __libc_single_threaded;
	without = NULL;
	heir = early;
	early.end = -1;
	if (heir.end < 0)
		err = place_for_child(&heir);
	if (may_fail && guise_heir_error(err)) {
		guise_own_fork_parent();
		errno = saved;
		return guise_heir_error(err);
	}
	if (err) {
		static bool said;

		if (!said)
			preload_say("a child process goes without this one's sockets: %s",
				    guise_error());
		said = true;
	}
	if (heir.end < 0)
		remember();
	errno = saved;
	return 0;
}

void preload_fork_prepare(void)
{
	prepare(false);
}

void preload_fork_parent(void)
{
	if (without)
		guise_fdmap_free(without, &preload_local);
	guise_heir_drop(&heir);
	guise_own_fork_parent();
}

/* Finds numbers that another thread of the parent has closed since the table was copied. */
static void look_at_numbers(void)
{
	int fd = -1;

	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0)
		if (guise_fdmap_get(preload.map, fd) & GUISE_FD_PRIVATE &&
		    preload_inode(fd) != guise_fdmap_inode(preload.map, fd))
			preload_forget(fd);
}

void preload_fork_child(void)
{
	bool member = heir.end >= 0;

	preload.pid = (pid_t)host_sys(SYS_getpid);
	preload_placeholders_forked();
	preload_shell_forked();
	preload_completion_forked();
	if (member) {
		guise_heir_become(preload.stack, &heir);
		preload.map = (void *)(uintptr_t)guise_own_place(preload.stack)->fdmap;
		preload_epoll_forked();
		if (preload.stack->served)
			preload_own_fds_changed();
	} else {
		preload.map = without ? without : &preload_nothing;
		if (preload.stack)
			guise_abandon(preload.stack);
		preload.stack = NULL;
		preload.prepared = false;
	}
	preload_trap_thread();
	guise_own_fork_child();
	if (member)
		preload_let_go_to_find_leaks();
	if (member && !alone)
		look_at_numbers();
}

/* Between the two, whatever makes the child. */
#define FORKED(pid)                            \
	do {                                   \
		if (pid)                       \
			preload_fork_parent(); \
		else                           \
			preload_fork_child();  \
	} while (0)

/* The handlers of pthread_atfork() cannot make fork fail: so the place is prepared before. */
HOOK pid_t fork(void)
{
	unsigned long all = ~GUISE_UNBLOCKED, before;
	pid_t pid = -1;
	int err;

	if (!preload.stack)
		return HOST(fork)();
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET);
	err = guise_heir_error(place_for_child(&early));
	if (err)
		errno = -err;
	else
		pid = HOST(fork)();
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, KERNEL_SIGSET);
	return pid;
}

HOOK pid_t __fork(void) SAME_AS(fork);

HOOK pid_t _Fork(void)
{
	pid_t pid;
	int err;

	if (preload.ticket < 0)
		return HOST(_Fork)();
	err = prepare(true);
	if (err)
		return (pid_t)libc_result(err);
	pid = HOST(_Fork)();
	FORKED(pid);
	return pid;
}

long preload_raw_fork(long nr, const long arguments[5])
{
	uint64_t flags = nr == SYS_clone
				 ? (uint64_t)arguments[0]
				 : ((const struct clone_args *)(uintptr_t)arguments[0])->flags;
	int err = prepare(true);
	long pid;

	if (err)
		return err;
	pid = host_sys(nr, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
	FORKED(pid);
	if (!pid)
		preload_entered_namespaces(flags);
	return pid;
}

bool preload_clone3_forks(long arguments, long size)
{
	const struct clone_args *a = (const void *)arguments;

	return size >= CLONE_ARGS_SIZE_VER0 && !guise_readable(a, CLONE_ARGS_SIZE_VER0) &&
	       !(a->flags & CLONE_VM) && !a->stack;
}

bool preload_clone3_vforks(long arguments, long size)
{
	const struct clone_args *a = (const void *)arguments;
	const uint64_t both = CLONE_VM | CLONE_VFORK;

	return size >= CLONE_ARGS_SIZE_VER0 && !guise_readable(a, CLONE_ARGS_SIZE_VER0) &&
	       (a->flags & both) == both && !a->stack;
}

/* Another thread of the parent may have been about to fork: the place that it had is dropped. */
static void unseen_child(void)
{
	if (!preload.stack)
		return;
	guise_own_fork_prepare();
	guise_heir_drop(&heir);
	without = NULL;
	remember();
	preload_fork_child();
}

void preload_watch_unseen(void)
{
	guise_slots_unseen(unseen_child);
}

struct beginning {
	int (*function)(void *);
	void *argument;
	int flags;
};

static int child_begins(void *memory)
{
	struct beginning *b = memory;

	preload_fork_child();
	preload_entered_namespaces((unsigned int)b->flags);
	return b->function(b->argument);
}

/* A child with memory of its own is like the child of a fork, on the stack that was given. */
HOOK int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	struct beginning b = { function, argument, flags };
	void *parent_tid, *tls, *child_tid;
	va_list ap;
	int pid;

	va_start(ap, argument);
	parent_tid = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	child_tid = va_arg(ap, void *);
	va_end(ap);
	if (flags & CLONE_VM || preload.ticket < 0 || !function)
		return HOST(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
	pid = prepare(true);
	if (pid)
		return (int)libc_result(pid);
	pid = HOST(clone)(child_begins, stack, flags, &b, parent_tid, tls, child_tid);
	preload_fork_parent();
	return pid;
}
