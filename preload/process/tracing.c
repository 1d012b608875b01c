// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the holder's tracing (holder/members/tracer.c) would be in a program's way. A process
 * has one tracer, which for a member is the holder.
 *
 * ptrace(2): to a program that wants to trace a member the host's kernel says EPERM. Then
 * the holder is asked to let go of that member, and the call is made again.
 *
 * exec: a process that is traced gets no privilege from a setuid program or from
 * capabilities of a file, unless its tracer has all of them. So the holder is asked to let
 * go before. For a program that gains privileges the loader ignores LD_PRELOAD, and it must
 * not use memory that its user can write. So it is on the host's stack, and is noted
 * (outside.c).
 *
 * A leak sanitizer traces its own process when that ends, by system calls that no hook
 * sees, and ends the program with an error if it may not. So the holder lets go of a
 * program that has one as soon as it has joined.
 */
#include "preload/preload.h"

#include "host/probe.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/join.h"
#include "region/process.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>

/* How long for the holder to notice a child that has just been forked. */
#define NOTICE_LOOKS 100
#define NOTICE_NS    1000000

static bool let_go; /* to execute a program */

/* A leak sanitizer, in a program that has one. */
void __lsan_do_leak_check(void) __attribute__((weak));

/* False: it was not traced. */
static bool ask_to_let_go(struct guise_stack *s)
{
	const struct timespec nap = { 0, NOTICE_NS };
	const struct guise_proc *self = guise_own_place(s);

	if (s->served)
		return false;

	for (int i = 0; i < NOTICE_LOOKS && !__atomic_load_n(&self->pid, __ATOMIC_ACQUIRE); i++)
		host_sys(SYS_nanosleep, &nap, 0);
	return !self->untraced && !guise_ask(s, GUISE_ASK_LET_GO, 0);
}

void preload_let_go_to_find_leaks(void)
{
	if (__lsan_do_leak_check && preload.stack)
		ask_to_let_go(preload.stack);
}

static bool has_capabilities(int dir, const char *path)
{
	char own[32 + PATH_MAX], caps[64];

	if (dir == AT_FDCWD || path[0] == '/')
		return host_sys(SYS_getxattr, path, "security.capability", caps, sizeof(caps)) > 0;
	snprintf(own, sizeof(own), "/proc/self/fd/%d/%s", dir, path);
	if (!*path)
		own[strlen(own) - 1] = '\0';
	return host_sys(SYS_getxattr, own, "security.capability", caps, sizeof(caps)) > 0;
}

/* Whether the loader of such a program will leave this library out (AT_SECURE). */
static bool loads_nothing(const struct stat *st)
{
	long uid = host_sys(SYS_getuid);

	if (host_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	if (st->st_mode & S_ISUID)
		return st->st_uid != uid;
	if (st->st_mode & S_ISGID)
		return st->st_gid != host_sys(SYS_getgid);
	return uid != 0;
}

/* The name of a file, for others than this process. */
static const char *name_of(int dir, const char *path, char name[PATH_MAX])
{
	char link[32 + PATH_MAX];
	long n;

	if (*path && (dir == AT_FDCWD || *path == '/'))
		return path;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = host_sys(SYS_readlinkat, AT_FDCWD, link, name, PATH_MAX - 1);
	name[n < 0 ? 0 : n] = '\0';
	if (*path && strlen(name) + strlen(path) + 2 <= PATH_MAX)
		strcat(strcat(name, "/"), path);
	return name;
}

/* Notes a program that cannot be on the stack, or is not to be (inside is false). True if it gains
 * privileges. */
static bool look_at_program(int dir, const char *path, int flags, bool inside)
{
	char name[PATH_MAX];
	bool privileged;
	struct stat st;

	if (guise_readable(path, 1) || host_sys(SYS_newfstatat, dir, path, &st, flags) ||
	    !S_ISREG(st.st_mode))
		return false;
	privileged = st.st_mode & (S_ISUID | S_ISGID) || has_capabilities(dir, path);
	if (!inside)
		preload_outside(name_of(dir, path, name), GUISE_OUTSIDE_OFF);
	else if (!privileged)
		preload_outside_file(name_of(dir, path, name));
	else if (loads_nothing(&st))
		preload_outside(name_of(dir, path, name), GUISE_OUTSIDE_PRIVILEGED);
	return privileged;
}

void preload_let_go_to_execute(int dir, const char *path, int flags, bool inside)
{
	struct guise_stack *s = preload.stack;

	if (look_at_program(dir, path, flags, inside) && s && !preload_borrowed())
		let_go = ask_to_let_go(s);
}

/* Crash reporters do so. */
void preload_let_go(void)
{
	if (preload.stack && !preload_borrowed())
		ask_to_let_go(preload.stack);
}

const char *preload_find_program(const char *name, char path[PATH_MAX])
{
	const char *at = secure_getenv("PATH"), *end;

	if (guise_readable(name, 1) || !*name)
		return NULL;
	if (strchr(name, '/'))
		return name;
	for (at = at ? at : "/bin:/usr/bin"; at; at = *end ? end + 1 : NULL) {
		int length;

		end = strchrnul(at, ':');
		length = (int)(end - at);
		if (snprintf(path, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "", name) <
			    PATH_MAX &&
		    !host_sys(SYS_faccessat, AT_FDCWD, path, X_OK))
			return path;
	}
	return NULL;
}

void preload_let_go_to_search(const char *name, bool inside)
{
	char path[PATH_MAX];

	name = preload_find_program(name, path);
	if (name)
		preload_let_go_to_execute(AT_FDCWD, name, 0, inside);
}

void preload_look_at_spawned(const char *name, bool search, bool inside)
{
	char path[PATH_MAX];

	if (search)
		name = preload_find_program(name, path);
	if (name)
		look_at_program(AT_FDCWD, name, 0, inside);
}

void preload_trace_again(void)
{
	if (let_go && preload.stack)
		guise_ask(preload.stack, GUISE_ASK_TRACE, 0);
	let_go = false;
}

/* The process may be on another stack, whose holder this program cannot ask: tells the user. */
static void name_the_other_holder(pid_t pid)
{
	static const char holder[] = "guise-holder\n";
	char path[32], name[sizeof(holder)] = "";
	struct guise_thread thread;
	long fd;

	if (!guise_thread_read(pid, &thread) || thread.tracer <= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)thread.tracer);
	fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	host_sys(SYS_read, fd, name, sizeof(name) - 1);
	host_sys(SYS_close, fd);
	if (!strcmp(name, holder))
		preload_say("process %d is traced by the holder of its stack, which is another "
			    "one; guise detach %d lets go of it",
			    (int)pid, (int)thread.process);
}

HOOK long ptrace(enum __ptrace_request request, ...)
{
	bool begins = request == PTRACE_TRACEME || request == PTRACE_ATTACH ||
		      request == PTRACE_SEIZE;
	int saved = errno;
	void *addr, *data;
	va_list ap;
	pid_t pid;
	long ret;

	va_start(ap, request);
	pid = va_arg(ap, pid_t);
	addr = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	ret = HOST(ptrace)(request, pid, addr, data);
	if (ret != -1 || errno != EPERM || !begins || !preload.stack || preload_borrowed())
		return ret;
	if (guise_ask(preload.stack, GUISE_ASK_LET_GO, request == PTRACE_TRACEME ? 0 : pid)) {
		if (request != PTRACE_TRACEME)
			name_the_other_holder(pid);
		errno = EPERM;
		return -1;
	}
	errno = saved;
	return HOST(ptrace)(request, pid, addr, data);
}
