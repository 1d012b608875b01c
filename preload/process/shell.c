// SPDX-License-Identifier: GPL-2.0-only
/*
 * system and popen: programs that a shell starts.
 *
 * libc's own start the shell inside libc, past the hooks. The shell would get no private
 * sockets, and would be on the host's stack if the program had emptied its environment. So
 * these calls use posix_spawn() here, whose hook (spawn.c) prevents both. They behave as POSIX
 * and glibc say: while system() waits SIGINT and SIGQUIT
 * are ignored and SIGCHLD is blocked, for all threads that are in it; a thread that is
 * cancelled there kills its shell; a child of popen() does not have the streams of
 * earlier ones; fclose() of such a stream waits as pclose() does.
 */
#include "preload/locks.h"
#include "preload/preload.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL     "/bin/sh"
#define NOT_FOUND (127 << 8) /* as if the shell had ended so */

/* ---- system ------------------------------------------------------------------- */

static unsigned int waiting; /* threads in system() */
static struct sigaction interrupt, quit;

static void ignore(void)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };

	guise_own_lock(PRELOAD_LOCK_SHELL);
	if (!waiting++) {
		sigaction(SIGINT, &ignored, &interrupt);
		sigaction(SIGQUIT, &ignored, &quit);
	}
	guise_own_unlock(PRELOAD_LOCK_SHELL);
}

static void restore(void)
{
	guise_own_lock(PRELOAD_LOCK_SHELL);
	if (!--waiting) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
	}
	guise_own_unlock(PRELOAD_LOCK_SHELL);
}

struct running {
	pid_t pid;
	sigset_t mask;
};

static pid_t wait_for(pid_t pid, int *status)
{
	pid_t got;

	do {
		got = waitpid(pid, status, 0);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* The thread is cancelled: cancellation is off by now. */
static void give_up(void *memory)
{
	struct running *r = memory;

	kill(r->pid, SIGKILL);
	wait_for(r->pid, NULL);
	restore();
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

static int start_shell(pid_t *pid, const char *line, const sigset_t *mask)
{
	char *const argv[] = { "sh", "-c", (char *)line, NULL };
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int err;

	sigemptyset(&defaults);
	if (interrupt.sa_handler != SIG_IGN)
		sigaddset(&defaults, SIGINT);
	if (quit.sa_handler != SIG_IGN)
		sigaddset(&defaults, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, mask);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	err = posix_spawn(pid, SHELL, NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	return err;
}

static int run(const char *line)
{
	struct running r;
	sigset_t child;
	int err, status = -1;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	ignore();
	sigprocmask(SIG_BLOCK, &child, &r.mask);
	err = start_shell(&r.pid, line, &r.mask);
	if (!err) {
		pthread_cleanup_push(give_up, &r);
		if (wait_for(r.pid, &status) != r.pid)
			status = -1;
		pthread_cleanup_pop(0);
	} else {
		status = NOT_FOUND;
	}
	restore();
	sigprocmask(SIG_SETMASK, &r.mask, NULL);
	if (err)
		errno = err;
	return status;
}

HOOK int system(const char *line)
{
	if (!preload_on_stack())
		return HOST(system)(line);
	return line ? run(line) : run("exit 0") == 0;
}

/* ---- popen -------------------------------------------------------------------- */

/* A stream of popen(), and the shell at its other end. */
struct opened {
	struct opened *next;
	FILE *stream;
	pid_t pid;
};

static struct opened *all;

void preload_shell_forked(void)
{
	waiting = 0;
}

static int actions_for(posix_spawn_file_actions_t *actions, int end, int number)
{
	int err = posix_spawn_file_actions_adddup2(actions, end, number);

	for (struct opened *o = all; o && !err; o = o->next)
		if (fileno(o->stream) != number)
			err = posix_spawn_file_actions_addclose(actions, fileno(o->stream));
	return err;
}

/* Starts the shell with end as its stdin or stdout. 0 or an error. */
static int start_piped(struct opened *o, const char *line, int end, int number)
{
	char *const argv[] = { "sh", "-c", (char *)line, NULL };
	posix_spawn_file_actions_t actions;
	int err, spare = -1;

	/* Where the program has no stdin or stdout: it must not pass as close-on-exec. */
	if (end == number) {
		spare = fcntl(end, F_DUPFD_CLOEXEC, number + 1);
		if (spare < 0)
			return errno;
		end = spare;
	}
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		err = actions_for(&actions, end, number);
		if (!err)
			err = posix_spawn(&o->pid, SHELL, &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	if (spare >= 0)
		close(spare);
	return err;
}

/* Of "r" or "w", with or without "e"; false: something else. */
static bool read_mode(const char *mode, bool *reads, bool *cloexec)
{
	bool read = false, write = false;

	*cloexec = false;
	for (; *mode; mode++) {
		if (*mode == 'r')
			read = true;
		else if (*mode == 'w')
			write = true;
		else if (*mode == 'e')
			*cloexec = true;
		else
			return false;
	}
	*reads = read;
	return read != write;
}

HOOK FILE *popen(const char *line, const char *mode)
{
	bool reads, cloexec;
	struct opened *o;
	int ends[2], err;

	if (!preload_on_stack())
		return HOST(popen)(line, mode);
	if (!read_mode(mode, &reads, &cloexec)) {
		errno = EINVAL;
		return NULL;
	}
	o = malloc(sizeof(*o));
	if (!o || pipe2(ends, O_CLOEXEC)) {
		free(o);
		return NULL;
	}
	o->stream = fdopen(ends[!reads], reads ? "r" : "w");
	err = o->stream ? 0 : errno;
	guise_own_lock(PRELOAD_LOCK_SHELL);
	if (!err)
		err = start_piped(o, line, ends[reads], reads);
	if (!err) {
		o->next = all;
		all = o;
	}
	guise_own_unlock(PRELOAD_LOCK_SHELL);
	close(ends[reads]);
	if (!err) {
		if (!cloexec)
			fcntl(ends[!reads], F_SETFD, 0);
		return o->stream;
	}
	if (o->stream)
		fclose(o->stream);
	else
		close(ends[!reads]);
	free(o);
	errno = err;
	return NULL;
}

HOOK FILE *_IO_popen(const char *line, const char *mode) SAME_AS(popen);

pid_t preload_popened(FILE *stream)
{
	struct opened *o, **at = &all;
	pid_t pid = 0;

	if (likely(!__atomic_load_n(&all, __ATOMIC_ACQUIRE)))
		return 0;
	guise_own_lock(PRELOAD_LOCK_SHELL);
	while (*at && (*at)->stream != stream)
		at = &(*at)->next;
	o = *at;
	if (o) {
		*at = o->next;
		pid = o->pid;
	}
	guise_own_unlock(PRELOAD_LOCK_SHELL);
	free(o);
	return pid;
}

int preload_pclose_wait(pid_t pid)
{
	int state, status;
	pid_t got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	got = wait_for(pid, &status);
	pthread_setcancelstate(state, NULL);
	return got < 0 ? -1 : status;
}

/* As in libc, where the two are one. */
HOOK int pclose(FILE *stream)
{
	return fclose(stream);
}
