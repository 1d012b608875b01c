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
 * are hooked. Signals wait meanwhile: a handler in the child would use the parent's
 * slot.
 *
 * Between the copy and the host's fork other threads of the parent may close a
 * descriptor, and open another one by its number. So the child of a process with
 * threads looks at each number once: what is not the placeholder that the table knows
 * is forgotten.
 *
 * When no place can be had, the child goes without: its table marks the parent's
 * sockets stale, and to use one gives EBADF and a sentence.
 */
#include "preload.h"

#include "host/signal.h"
#include "host/sys.h"
#include "region/heir.h"
#include "region/stack.h"
#include "trap.h"
#include "waiting.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/single_threaded.h>

static struct guise_heir heir = { .end = -1 };
static struct guise_fdmap *without; /* what a child without a place knows of descriptors */
static bool alone;                  /* the process has one thread */
static unsigned long mask;

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

/* Whether anything stands in the stack behind this process's descriptors. */
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

void preload_fork_prepare(void)
{
	unsigned long all = ~GUISE_UNBLOCKED, before;
	int saved = errno;

	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET);
	pthread_mutex_lock(&preload_lock);
	mask = before;
	alone = __libc_single_threaded;
	without = NULL;
	heir.end = -1;
	if (!preload.stack || preload_borrowed() || !has_private()) {
		remember();
	} else if (guise_heir_prepare(preload.stack, preload.ticket, &heir, NULL, 0,
				      preload.stack_nudge)) {
		static bool said;

		if (!said)
			preload_say("a child process goes without this one's sockets: %s",
				    guise_error());
		said = true;
		remember();
	}
	errno = saved;
}

static void let_go(void)
{
	unsigned long before = mask;

	pthread_mutex_unlock(&preload_lock);
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, KERNEL_SIGSET);
}

void preload_fork_parent(void)
{
	if (without)
		guise_fdmap_free(without, &preload_local);
	guise_heir_drop(&heir);
	let_go();
}

/* Numbers that another thread of the parent has closed since the table was copied. */
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
	pthread_mutex_init(&preload_lock, NULL);
	pthread_mutex_lock(&preload_lock);
	if (member) {
		guise_heir_become(preload.stack, &heir);
		preload.map =
			(void *)(uintptr_t)preload.stack->region->procs[preload.stack->proc].fdmap;
		preload_epoll_forked();
	} else {
		preload.map = without ? without : &preload_nothing;
		if (preload.stack)
			guise_abandon(preload.stack);
		preload.stack = NULL;
		preload.prepared = false;
	}
	preload_trap_thread();
	let_go();
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

HOOK pid_t _Fork(void)
{
	pid_t pid;

	if (!preload.stack)
		return HOST(_Fork)();
	preload_fork_prepare();
	pid = HOST(_Fork)();
	FORKED(pid);
	return pid;
}

long preload_raw_fork(unsigned long flags, const long arguments[4])
{
	long pid;

	if (preload.stack)
		preload_fork_prepare();
	pid = host_sys(SYS_clone, flags, arguments[0], arguments[1], arguments[2], arguments[3]);
	if (preload.stack)
		FORKED(pid);
	return pid;
}

struct beginning {
	int (*function)(void *);
	void *argument;
};

static int child_begins(void *memory)
{
	struct beginning *b = memory;

	preload_fork_child();
	return b->function(b->argument);
}

/* With memory of its own, the child is that of a fork on another stack. */
HOOK int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	struct beginning b = { function, argument };
	void *parent_tid, *tls, *child_tid;
	va_list ap;
	int pid;

	va_start(ap, argument);
	parent_tid = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	child_tid = va_arg(ap, void *);
	va_end(ap);
	if (flags & CLONE_VM || !preload.stack || !function)
		return HOST(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
	preload_fork_prepare();
	pid = HOST(clone)(child_begins, stack, flags, &b, parent_tid, tls, child_tid);
	preload_fork_parent();
	return pid;
}
