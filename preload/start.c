// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joining.
 *
 * $GUISE_STACK is the number of an inherited descriptor, the ticket. Where it
 * is not set, or on Valgrind, the library does nothing: the table of private descriptors
 * stays empty and every call is libc's. Where it is set the process joins
 * before main(), or earlier when a constructor needs a socket. A program that was to
 * run on a stack never runs on the host's instead: when joining fails it ends
 * with status 125 and one sentence.
 *
 * For a program to which the one before left private sockets, a place in the stack was
 * prepared: it enters this place instead (passing.c). For fork see fork.c.
 *
 * A vfork child shares the parent's memory, and with it the table, but has
 * descriptors of its own: what it closes must not be closed in the stack.
 */
#include "preload/preload.h"
#include "host/signal.h"
#include "host/fd.h"
#include "host/plain.h"
#include "host/sys.h"
#include "region/join.h"
#include "region/slot.h"
#include "region/stack.h"
#include "preload/locks.h"
#include "preload/raw/trap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FAILED_TO_JOIN 125 /* as env(1) and timeout(1): the tool failed, not the program */
#define LOW_TICKET     64  /* a ticket below this stands where programs dup2() to */

struct guise_fdmap preload_nothing;

struct preload preload = {
	.map = &preload_nothing,
	.placeholder = -1,
	.ticket = -1,
	.nudge = -1,
	.stack_nudge = -1,
	.place = -1,
	.own_low = INT32_MAX,
};

static bool ticket_read;
static int given = -1; /* the end of a place that is made already */

void preload_say(const char *format, ...)
{
	char line[512];
	size_t n, room = sizeof(line) - 1;
	va_list ap;

	n = (size_t)snprintf(line, room, "guise: %.64s: ", program_invocation_short_name);
	va_start(ap, format);
	vsnprintf(line + n, room - n, format, ap);
	va_end(ap);
	guise_plain(line); /* it may name what others have named */
	n = strlen(line);
	line[n++] = '\n';
	host_sys(SYS_write, 2, line, n);
}

static void die(const char *what, const char *why)
{
	preload_say("%s: %s", what, why);
	host_sys(SYS_exit_group, FAILED_TO_JOIN);
	__builtin_unreachable();
}

/* Moves the ticket to a number that the program does not use. */
static void move_ticket(void)
{
	char number[16];
	long fd;

	if (preload.ticket >= LOW_TICKET)
		return;
	/* Not close-on-exec: programs that this one starts join with it. */
	fd = guise_fd_high((int)host_sys(SYS_dup, preload.ticket));
	if (fd < LOW_TICKET)
		return;
	host_sys(SYS_fcntl, fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%ld", fd);
	if (setenv("GUISE_STACK", number, 1))
		die("cannot set GUISE_STACK", strerror(errno));
	host_sys(SYS_close, preload.ticket);
	preload.ticket = (int)fd;
}

bool preload_borrowed(void)
{
	return host_sys(SYS_getpid) != preload.pid;
}

/* The place that this program was given, "DESCRIPTOR:INODE"; both are checked. */
static void read_place(void)
{
	const char *text = secure_getenv("GUISE_PLACE");
	char *end;
	long fd, inode;

	if (!text)
		return;
	fd = strtol(text, &end, 10);
	if (*end == ':' && fd >= 0 && fd <= INT32_MAX) {
		inode = strtol(end + 1, &end, 10);
		if (!*end && inode && inode == preload_inode((int)fd))
			given = (int)fd;
	}
	unsetenv("GUISE_PLACE"); /* for this program alone */
}

/* No malloc here: a malloc that is being set up may be asking. */
static void read_ticket(void)
{
	const char *text = secure_getenv("GUISE_STACK");
	char *end;
	long fd;

	if (!text || preload_on_valgrind())
		return;
	fd = strtol(text, &end, 10);
	if (end == text || *end || fd < 0 || host_sys(SYS_fcntl, fd, F_GETFD) < 0)
		die("GUISE_STACK must be the number of an open descriptor, but is", text);
	preload.ticket = (int)fd;
	preload.pid = (pid_t)host_sys(SYS_getpid);
	read_place();
}

/*
 * In a fork, threads that hold guise's locks must be done with malloc() before malloc's own
 * handlers take its locks. fork() calls first the handlers that were registered last; so a
 * malloc that registers its own when it is first called (jemalloc) is called here before.
 */
static void watch_forks(void)
{
	static bool done;
	void *volatile first; /* or the compiler leaves the call out */

	if (done)
		return;
	first = malloc(1);
	free(first);
	guise_slots_begin(); /* its handler in the child comes first */
	pthread_atfork(preload_fork_prepare, preload_fork_parent, preload_fork_child);
	preload_watch_unseen();
	done = true;
}

/* True: into a place that may hold private sockets. */
static bool join(void)
{
	struct guise_stack *s = NULL;
	bool entered;
	int err;

	watch_forks();
	preload_stdio_begin();
	if (given >= 0)
		s = guise_join_enter(given, GUISE_JOIN_ENTER, &err);
	given = -1;
	entered = s;
	if (!s)
		s = guise_join_uncounted(preload.ticket, &err);
	if (!s)
		die("cannot join its network stack", guise_error());
	move_ticket();
	__atomic_store_n(&preload.stack, s, __ATOMIC_RELEASE);
	preload_own_fds_changed();
	preload_escaped_begin();
	preload_let_go_to_find_leaks();
	return entered;
}

bool preload_on_stack(void)
{
	guise_own_once(PRELOAD_LOCK_BEGIN, &ticket_read, read_ticket);
	return preload.ticket >= 0;
}

struct guise_stack *preload_stack(void)
{
	struct guise_stack *s = __atomic_load_n(&preload.stack, __ATOMIC_ACQUIRE);
	bool entered = false;
	int saved = errno;

	if (likely(s) || !preload_on_stack())
		return s;
	guise_own_lock(PRELOAD_LOCK_BEGIN);
	if (!preload.stack)
		entered = join();
	guise_own_unlock(PRELOAD_LOCK_BEGIN);
	if (entered)
		preload_inherit();
	errno = saved;
	return preload.stack;
}

/*
 * Constructors of other libraries may have run before this one, and may have
 * made sockets: then the process has joined already.
 */
__attribute__((constructor)) static void begin(void)
{
	unsigned long unblocked = GUISE_UNBLOCKED; /* masks pass exec */

	preload_find_originals();
	if (!preload_stack())
		return;
	guise_count(preload.stack, GUISE_COUNT_PROGRAMS, 1);
	guise_leave_at_end(preload_leave_quietly);
	preload_exec_begin();
	preload_outside_begin();
	host_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &unblocked, 0, sizeof(unblocked));
	preload_trap_begin();
}
