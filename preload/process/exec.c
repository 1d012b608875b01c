// SPDX-License-Identifier: GPL-2.0-only
/*
 * exec, also where posix_spawn, system and popen make it.
 *
 * The next program stays on the stack, whatever this one did to its environment:
 * LD_PRELOAD and GUISE_STACK are put back where they are missing, and the ticket is made
 * to pass exec. (GUISE_PRELOAD=off is for programs that join by libguise themselves: the
 * library is taken out.) The next program gets the private sockets whose placeholders it gets.
 * When there are any, a place with copies of them is made before the host's exec
 * (region/heir.h); the right to it is a descriptor that GUISE_PLACE names, with its
 * inode. This program's own place is buried when its channel hangs up, as at any
 * end. When exec fails the new place is dropped, and nothing else has changed.
 *
 * Sockets that pass are marked by the placeholder's inode, not by number: the new program
 * looks through its descriptors and finds them even where numbers were changed unseen. That
 * happens in the child of a vfork, whose hooks must not change the table that it shares
 * with its parent; in the file actions of posix_spawn, which libc carries out inside; and
 * in a program without guise that was executed between the two.
 *
 * Which sockets pass is known before exec, except for posix_spawn: there every socket is
 * marked that is not close-on-exec, or that a file action has named (GUISE_FD_SPAWN). The
 * new program closes the marked ones that it does not find; if guise is not part of the
 * program, they stay open until it ends.
 *
 * An epoll has no inode of its own. It is found by its number, if that has not been
 * given to another descriptor.
 */
#include "preload/locks.h"
#include "preload/preload.h"

#include "host/probe.h"
#include "host/fd.h"
#include "host/sys.h"
#include "region/heir.h"
#include "region/stack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PRELOAD "LD_PRELOAD="
#define STACK   "GUISE_STACK="
#define PLACE   "GUISE_PLACE="

/* Other variables that are put back into an environment without them, as they were at the start. */
static const char *const others[] = { "GUISE_MPTCP", "GUISE_DNS", "GUISE_RESOLV_CONF",
				      "GUISE_HOSTS", "GUISE_OUTSIDE" };
#define OTHERS (sizeof(others) / sizeof(*others))

static char *other[OTHERS]; /* NAME=VALUE, or NULL */
static char library[PATH_MAX];

void preload_exec_begin(void)
{
	Dl_info self;

	if (dladdr(&preload, &self) && self.dli_fname && strlen(self.dli_fname) < sizeof(library))
		strcpy(library, self.dli_fname);
	for (size_t i = 0; i < OTHERS; i++) {
		const char *value = getenv(others[i]);

		if (value && asprintf(&other[i], "%s=%s", others[i], value) < 0)
			other[i] = NULL;
	}
}

const char *preload_library(void)
{
	return library;
}

/* ---- the environment ------------------------------------------------------- */

static size_t lines(char *const *env)
{
	size_t n = 0;

	while (env && env[n])
		n++;
	return n;
}

static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncmp(line, name, n) ? NULL : line + n;
}

/* Our library in a list of them; NULL if it is not there. */
static const char *find_library(const char *list)
{
	size_t n = strlen(library);

	for (const char *at = list; (at = strstr(at, library)); at++)
		if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[n]))
			return at;
	return NULL;
}

static bool switched_off(char *const *env)
{
	for (; env && *env; env++)
		if (!strcmp(*env, "GUISE_PRELOAD=off"))
			return true;
	return false;
}

/* env without our library. */
static void strip(char **line, char *longer, char *const *env)
{
	size_t n = 0;

	for (; env && *env; env++) {
		const char *list = value_of(*env, PRELOAD), *at = list ? find_library(list) : NULL;

		line[n++] = at ? longer : *env;
		if (at)
			sprintf(longer, PRELOAD "%.*s%s", (int)(at - list), list,
				at + strlen(library));
	}
	line[n] = NULL;
}

/* How long the line for LD_PRELOAD may get. */
static size_t preload_room(char *const *env)
{
	size_t room = sizeof(PRELOAD) + strlen(library) + 1;

	for (; env && *env; env++)
		if (value_of(*env, PRELOAD))
			room += strlen(*env);
	return room;
}

/*
 * env for a program on the stack, into line, which has room for it and 4 + OTHERS more;
 * longer has preload_room(). place: the end of the place that waits for it, or -1.
 */
static void furnish(char **line, char *longer, char *number, char *where, char *const *env,
		    int place)
{
	const char *list = NULL;
	bool has_stack = false;
	size_t n = 0;

	if (switched_off(env)) {
		strip(line, longer, env);
		return;
	}
	for (; env && *env; env++) {
		if (value_of(*env, PLACE))
			continue;
		if (value_of(*env, PRELOAD)) {
			list = value_of(*env, PRELOAD);
			if (!find_library(list))
				continue;
		}
		has_stack |= value_of(*env, STACK) != NULL;
		line[n++] = *env;
	}
	if (!list || !find_library(list)) {
		strcpy(longer, PRELOAD);
		if (list && *list)
			strcat(strcat(longer, list), ":");
		line[n++] = strcat(longer, library);
	}
	if (!has_stack) {
		sprintf(number, STACK "%d", preload.ticket);
		line[n++] = number;
		for (size_t i = 0; i < OTHERS; i++)
			if (other[i])
				line[n++] = other[i];
	}
	if (place >= 0) {
		sprintf(where, PLACE "%d:%u", place, preload_inode(place));
		line[n++] = where;
	}
	line[n] = NULL;
}

/* ---- what passes ------------------------------------------------------------- */

static bool passes(int fd)
{
	long flags = host_sys(SYS_fcntl, fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Calls one() for each open descriptor of the host's; where /proc is not there, by trying. */
static void each_descriptor(void (*one)(int fd, void *data), void *data)
{
	_Alignas(struct dirent64) char records[2048];
	struct rlimit most = { 1024, 1024 };
	long dir, n, at;

	dir = host_sys(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &most);
		for (int fd = 0; fd < (int)most.rlim_cur && fd < GUISE_FDMAP_MAX; fd++)
			one(fd, data);
		return;
	}
	while ((n = host_sys(SYS_getdents64, dir, records, sizeof(records))) > 0)
		for (at = 0; at < n; at += ((struct dirent64 *)(void *)(records + at))->d_reclen) {
			const struct dirent64 *e = (const void *)(records + at);

			if (*e->d_name != '.' && atoi(e->d_name) != dir)
				one(atoi(e->d_name), data);
		}
	host_sys(SYS_close, dir);
}

/* Marks that are being gathered. While mark is NULL they are only counted. */
struct marks {
	struct guise_mark *mark;
	unsigned int n, room;
	bool spawn, borrowed;
};

/* Each descriptor of the stack once: in a vfork child several numbers may lead to it. */
static void mark(struct marks *m, uint32_t inode, int number, uint32_t entry)
{
	for (unsigned int i = 0; m->borrowed && m->mark && i < m->n; i++)
		if ((m->mark[i].entry & GUISE_FD_STACK) == (entry & GUISE_FD_STACK))
			return;
	if (m->mark && m->n < m->room)
		m->mark[m->n] = (struct guise_mark){ inode, (uint32_t)number, entry, 0 };
	m->n++;
}

static void mark_own(struct marks *m)
{
	int fd = -1;

	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0) {
		uint32_t entry = guise_fdmap_get(preload.map, fd);

		if (!(entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF)) ||
		    !(passes(fd) || (m->spawn && entry & GUISE_FD_SPAWN)))
			continue;
		preload_mark_shared(fd);
		mark(m, entry & GUISE_FD_PRIVATE ? guise_fdmap_inode(preload.map, fd) : 0, fd,
		     entry);
	}
}

/* In the child of a vfork the numbers are its own, and the table its parent's. */
static void mark_borrowed(int number, void *data)
{
	struct marks *m = data;
	uint32_t inode = passes(number) ? preload_inode(number) : 0;
	int fd = -1;

	if (!inode)
		return;
	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0)
		if (guise_fdmap_inode(preload.map, fd) == inode &&
		    guise_fdmap_get(preload.map, fd) & GUISE_FD_PRIVATE) {
			preload_mark_shared(fd);
			mark(m, inode, number, guise_fdmap_get(preload.map, fd));
			return;
		}
}

static unsigned int gather(struct marks *m)
{
	m->n = 0;
	if (guise_fdmap_next(preload.map, 0) < 0)
		return 0;
	m->borrowed = preload_borrowed();
	if (m->borrowed)
		each_descriptor(mark_borrowed, m);
	else
		mark_own(m);
	return m->n;
}

/* Memory of the stack for marks. Waits a while for memory that dead members still hold. */
static long memory_for(unsigned int n)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	long memory;

	for (int times = 0; times < 1500; times++) {
		memory = guise_call(preload.stack, GUISE_NR_ALLOC,
				    (long)(n * sizeof(struct guise_mark)), 0, 0, 0, 0, 0);
		if (memory != -ENOMEM)
			break;
		host_sys(SYS_nanosleep, &moment, NULL);
	}
	return memory;
}

/*
 * Prepares a place for the next program, if any private socket passes to it. Where there is no
 * place the program would lose its sockets: so exec and posix_spawn fail then, as fork does, with
 * EAGAIN or ENOMEM.
 */
static int prepare(struct guise_heir *heir, char *const *env, bool spawn)
{
	struct marks m = { .spawn = spawn };
	unsigned int n;
	long memory;
	int err;

	heir->end = -1;
	n = preload.stack && !switched_off(env) ? gather(&m) : 0;
	if (!n)
		return 0;
	memory = memory_for(n);
	if ((unsigned long)memory > -4096UL) {
		err = guise_fail((int)-memory, "the stack is full");
	} else {
		m.mark = (void *)memory;
		m.room = n;
		/* Fewer may be left this time; a mark that is all zero means nothing. */
		gather(&m);
		err = guise_heir_prepare(preload.stack, preload.ticket, heir, m.mark, n, -1);
		if (err)
			guise_call(preload.stack, GUISE_NR_FREE, memory,
				   (long)(n * sizeof(*m.mark)), 0, 0, 0, 0);
	}
	if (guise_heir_error(err))
		return guise_heir_error(err);
	if (err)
		preload_say("a program that it starts goes without this one's sockets: %s",
			    guise_error());
	return 0;
}

/* ---- the new program ---------------------------------------------------------- */

static void find_socket(int fd, void *data)
{
	struct marks *m = data;
	uint32_t inode = preload_own_fd(fd) ? 0 : preload_inode(fd);
	struct guise_mark *first = NULL;
	long sfd;

	if (!inode)
		return;
	for (unsigned int i = 0; i < m->n; i++)
		if (m->mark[i].inode == inode && (!first || !m->mark[i].found)) {
			first = &m->mark[i];
			if (!first->found)
				break;
		}
	if (!first)
		return;
	sfd = first->entry & GUISE_FD_STACK;
	if (first->found) /* one more number for it */
		sfd = guise_call(preload.stack, GUISE_NR_dup, sfd, 0, 0, 0, 0, 0);
	first->found = 1;
	if (sfd >= 0)
		preload_install(fd, (int)sfd,
				GUISE_FD_PRIVATE | GUISE_FD_SHARED |
					(first->entry & GUISE_FD_FILE));
}

static void find_epoll(struct guise_mark *mark)
{
	int fd = (int)mark->number;
	const uint32_t flags = GUISE_FD_EPOLL | GUISE_FD_HALF | GUISE_FD_HOSTED | GUISE_FD_NESTED |
			       GUISE_FD_STACK;

	if (host_sys(SYS_epoll_ctl, fd, EPOLL_CTL_DEL, preload.placeholder, 0) != -ENOENT)
		return;
	mark->found = !preload_map_set(fd, mark->entry & flags, 0);
}

void preload_inherit(void)
{
	struct guise_stack *s = preload.stack;
	struct guise_proc *proc = &s->region->procs[s->proc];
	struct marks m = { .mark = (void *)(uintptr_t)proc->marks, .n = proc->marks_n };

	if (!m.mark || preload_prepare())
		return;
	each_descriptor(find_socket, &m);
	for (unsigned int i = 0; i < m.n; i++) {
		if (!m.mark[i].inode && m.mark[i].entry)
			find_epoll(&m.mark[i]);
		if (!m.mark[i].found && m.mark[i].entry)
			guise_call(s, GUISE_NR_close, m.mark[i].entry & GUISE_FD_STACK, 0, 0, 0, 0,
				   0);
	}
	proc->marks = 0;
	guise_call(s, GUISE_NR_FREE, (long)m.mark, (long)(m.n * sizeof(*m.mark)), 0, 0, 0, 0);
}

/* ---- exec ---------------------------------------------------------------------- */

/* One of libc's ways to execute a program. */
struct execution {
	enum { BY_PATH, BY_SEARCH, BY_DESCRIPTOR, BY_DIRECTORY } how;
	int fd, flags;
	const char *name;
	char *const *argv;
	char *const *envp;
};

static int execute_on_host(const struct execution *x, char *const *env)
{
	switch (x->how) {
	case BY_SEARCH:
		return HOST(execvpe)(x->name, x->argv, env);
	case BY_DESCRIPTOR:
		return HOST(fexecve)(x->fd, x->argv, env);
	case BY_DIRECTORY:
		return HOST(execveat)(x->fd, x->name, x->argv, env, x->flags);
	default:
		return HOST(execve)(x->name, x->argv, env);
	}
}

static void let_go(const struct execution *x)
{
	bool inside = !switched_off(x->envp);

	switch (x->how) {
	case BY_SEARCH:
		preload_let_go_to_search(x->name, inside);
		break;
	case BY_DESCRIPTOR:
		preload_let_go_to_execute(x->fd, "", AT_EMPTY_PATH, inside);
		break;
	case BY_DIRECTORY:
		preload_let_go_to_execute(x->fd, x->name, x->flags & AT_EMPTY_PATH, inside);
		break;
	default:
		preload_let_go_to_execute(AT_FDCWD, x->name, 0, inside);
	}
}

static bool readable(char *const *env)
{
	return !env || !guise_readable(env, sizeof(*env));
}

/* The file that is executed, where it has a path. */
static const char *path_of(const struct execution *x, char path[PATH_MAX])
{
	if (x->how == BY_SEARCH)
		return preload_find_program(x->name, path);
	return x->how == BY_PATH ? x->name : NULL;
}

/*
 * Whether a program is to be loaded without its capabilities, and by what; and its arguments
 * then, for which there must be room for two more.
 */
static bool is_loaded_bare(const char *path, char *const *argv, char *const *envp,
			   char loader[PATH_MAX])
{
	return path && argv && readable(argv) && argv[0] && !switched_off(envp) &&
	       preload_loads_without_capabilities(path, loader);
}

static void load_bare(char **arguments, const char *path, char *const *argv)
{
	*arguments++ = argv[0];
	*arguments++ = (char *)path;
	while ((*arguments++ = *++argv))
		;
}

static int execute(const struct execution *x)
{
	struct guise_heir heir;
	int ret, saved;

	if (!preload_on_stack() || !*library || !readable(x->envp))
		return execute_on_host(x, x->envp);
	preload_outside_first();
	ret = prepare(&heir, x->envp, false);
	if (ret) {
		preload_outside_not_after_all();
		return (int)libc_result(ret);
	}
	{
		char *line[lines(x->envp) + 5 + OTHERS], longer[preload_room(x->envp)];
		char number[32], where[64], found[PATH_MAX], loader[PATH_MAX];
		const char *path = path_of(x, found);
		bool bare = is_loaded_bare(path, x->argv, x->envp, loader);
		char *arguments[bare ? lines(x->argv) + 2 : 1];
		struct execution loaded = { BY_PATH, -1, 0, loader, arguments, x->envp };

		if (bare) {
			load_bare(arguments, path, x->argv);
			x = &loaded;
		}
		furnish(line, longer, number, where, x->envp, heir.end);
		host_sys(SYS_fcntl, preload.ticket, F_SETFD, 0);
		if (heir.end >= 0)
			host_sys(SYS_fcntl, heir.end, F_SETFD, 0);
		let_go(x);
		preload_leave_quietly();
		ret = execute_on_host(x, line);
	}
	saved = errno;
	preload_outside_not_after_all();
	if (!preload_borrowed()) {
		guise_stay_after_all();
		preload_trace_again();
	}
	guise_heir_drop(&heir);
	errno = saved;
	return ret;
}

HOOK int execve(const char *path, char *const argv[], char *const envp[])
{
	return execute(&(struct execution){ BY_PATH, -1, 0, path, argv, envp });
}

HOOK int execv(const char *path, char *const argv[])
{
	return execute(&(struct execution){ BY_PATH, -1, 0, path, argv, environ });
}

HOOK int execvp(const char *name, char *const argv[])
{
	return execute(&(struct execution){ BY_SEARCH, -1, 0, name, argv, environ });
}

HOOK int execvpe(const char *name, char *const argv[], char *const envp[])
{
	return execute(&(struct execution){ BY_SEARCH, -1, 0, name, argv, envp });
}

HOOK int fexecve(int fd, char *const argv[], char *const envp[])
{
	return execute(&(struct execution){ BY_DESCRIPTOR, fd, 0, NULL, argv, envp });
}

HOOK int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	return execute(&(struct execution){ BY_DIRECTORY, dir, flags, path, argv, envp });
}

/* How many arguments follow the first, with the NULL. */
static size_t count(const char *first, va_list ap)
{
	size_t n = 1;

	for (const char *arg = first; arg; n++)
		arg = va_arg(ap, const char *);
	return n;
}

/* Fills argv with the arguments, up to the NULL. */
static void list(char **argv, const char *first, va_list *ap)
{
	*argv = (char *)first;
	while (*argv)
		*++argv = va_arg(*ap, char *);
}

#define LISTED(first)         \
	va_list ap;           \
	size_t n;             \
	va_start(ap, first);  \
	n = count(first, ap); \
	va_end(ap);           \
	char *argv[n];        \
	va_start(ap, first);  \
	list(argv, first, &ap)

HOOK int execl(const char *path, const char *first, ...)
{
	LISTED(first);
	va_end(ap);
	return execv(path, argv);
}

HOOK int execlp(const char *name, const char *first, ...)
{
	LISTED(first);
	va_end(ap);
	return execvp(name, argv);
}

HOOK int execle(const char *path, const char *first, ...)
{
	char *const *envp;

	LISTED(first);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, envp);
}

/* ---- posix_spawn ------------------------------------------------------------------ */

typedef int spawn_function(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attributes, char *const argv[],
			   char *const envp[]);

/* While locks are held all signals are blocked, and libc would give the child that mask: the one
 * from before is set in the attributes, unless the program has set another one. */
static void keep_mask(posix_spawnattr_t *own, const posix_spawnattr_t *given)
{
	short flags = 0;
	sigset_t mask;

	if (given)
		*own = *given;
	else
		posix_spawnattr_init(own);
	posix_spawnattr_getflags(own, &flags);
	if (flags & POSIX_SPAWN_SETSIGMASK)
		return;
	sigemptyset(&mask);
	*(unsigned long *)&mask = guise_own_mask();
	posix_spawnattr_setsigmask(own, &mask);
	posix_spawnattr_setflags(own, (short)(flags | POSIX_SPAWN_SETSIGMASK));
}

/*
 * The end of a place has the same number in all children, which file actions leave alone
 * (spawn.c). In this process another descriptor has that number, until the end is put there for
 * one child; so one thread spawns at a time.
 */
static int spawn(spawn_function *host, pid_t *pid, const char *name,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const argv[], char *const envp[])
{
	char found[PATH_MAX], loader[PATH_MAX];
	struct guise_heir heir;
	const char *path;
	int ret;

	if (!preload_on_stack() || !*library || !readable(envp))
		return host(pid, name, actions, attributes, argv, envp);
	path = host == HOST(posix_spawnp) ? preload_find_program(name, found) : name;
	/* A relative one may be another file's, after the actions. */
	if (is_loaded_bare(path, argv, envp, loader) && *path == '/') {
		char *arguments[lines(argv) + 2];

		load_bare(arguments, path, argv);
		return spawn(HOST(posix_spawn), pid, loader, actions, attributes, arguments, envp);
	}
	preload_outside_first();
	preload_look_at_spawned(name, host == HOST(posix_spawnp), !switched_off(envp));
	ret = prepare(&heir, envp, true);
	if (!ret && heir.end >= 0 && preload_spawn_place() < 0)
		ret = -EAGAIN; /* no descriptor that the program could find it by */
	if (ret) {
		guise_heir_drop(&heir);
		preload_outside_not_after_all();
		return -ret;
	}
	{
		char *line[lines(envp) + 5 + OTHERS], longer[preload_room(envp)];
		char number[32], where[64];
		bool placed = heir.end >= 0;
		posix_spawnattr_t own;

		if (placed) {
			guise_own_lock(PRELOAD_LOCK_SPAWN);
			guise_fd_onto(heir.end, preload.place, 0);
		}
		if (guise_own_locked()) {
			keep_mask(&own, attributes);
			attributes = &own;
		}
		furnish(line, longer, number, where, envp, placed ? preload.place : -1);
		host_sys(SYS_fcntl, preload.ticket, F_SETFD, 0);
		ret = host(pid, name, actions, attributes, argv, line);
		if (ret)
			preload_outside_not_after_all();
		if (placed) {
			guise_fd_onto(preload.ticket, preload.place, O_CLOEXEC);
			guise_own_unlock(PRELOAD_LOCK_SPAWN);
		}
	}
	guise_heir_drop(&heir);
	return ret;
}

HOOK int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(HOST(posix_spawn), pid, path, actions, attributes, argv, envp);
}

HOOK int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(HOST(posix_spawnp), pid, name, actions, attributes, argv, envp);
}
