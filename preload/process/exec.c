// SPDX-License-Identifier: GPL-2.0-only
/*
 * exec. posix_spawn, by which system and popen start programs too, is spawn.c's.
 *
 * The next program stays on the stack: its environment says which one (environment.c), and the
 * ticket is made to pass exec. It gets the private sockets that pass to it (passing.c).
 */
#include "preload/process/exec.h"

#include "host/probe.h"
#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

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
	bool inside = !exec_switched_off(x->envp);

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

bool exec_readable(char *const *env)
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

bool exec_is_loaded_bare(const char *path, char *const *argv, char *const *envp,
			 char loader[PATH_MAX])
{
	return path && argv && exec_readable(argv) && argv[0] && !exec_switched_off(envp) &&
	       preload_loads_without_capabilities(path, loader);
}

void exec_load_bare(char **arguments, const char *path, char *const *argv)
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

	if (!preload_on_stack() || !*preload_library() || !exec_readable(x->envp))
		return execute_on_host(x, x->envp);
	preload_outside_first();
	ret = exec_prepare(&heir, x->envp, false);
	if (ret) {
		preload_outside_not_after_all();
		return (int)libc_result(ret);
	}
	{
		char *line[exec_lines(x->envp) + 5 + EXEC_OTHERS], longer[exec_room(x->envp)];
		char number[32], where[64], found[PATH_MAX], loader[PATH_MAX];
		const char *path = path_of(x, found);
		bool bare = exec_is_loaded_bare(path, x->argv, x->envp, loader);
		char *arguments[bare ? exec_lines(x->argv) + 2 : 1];
		struct execution loaded = { BY_PATH, -1, 0, loader, arguments, x->envp };

		if (bare) {
			exec_load_bare(arguments, path, x->argv);
			x = &loaded;
		}
		exec_furnish(line, longer, number, where, x->envp, heir.end);
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
