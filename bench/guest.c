// SPDX-License-Identifier: GPL-2.0-only
/* See guest.h. */
#include "guest.h"

#include "benchmark.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 16

/* Finds the command `guise`: beside this program, or where `make install` puts it. */
static bool find_guise(char *path, size_t size)
{
	snprintf(path, size, "%sguise", programs);
	if (!access(path, X_OK))
		return true;
	snprintf(path, size, "%s../../bin/guise", programs);
	return !access(path, X_OK);
}

static bool is_installed(const char *name)
{
	const char *path = getenv("PATH");
	char copy[4096], file[4200], *rest = copy, *folder;

	snprintf(copy, sizeof(copy), "%s", path ? path : "");
	while ((folder = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/%s", folder, name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

bool guest_possible(enum way way)
{
	char path[4200];

	if (way == WAY_TUN)
		return find_guise(path, sizeof(path));
	return is_installed(way == WAY_PASTA ? "pasta" : "slirp4netns");
}

static __attribute__((noreturn)) void execute(const char *const *words, const char *program,
					      const char *const *argv)
{
	char *all[2 * WORDS_MAX];
	int n = 0;

	while (*words)
		all[n++] = (char *)*words++;
	all[n++] = (char *)program;
	for (argv++; *argv && n < 2 * WORDS_MAX - 1; argv++)
		all[n++] = (char *)*argv;
	all[n] = NULL;
	execvp(all[0], all);
	die(-errno, "cannot execute %s", all[0]);
}

static void silence(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, fd);
	close(null);
}

/* ---- slirp4netns, which needs a namespace that exists ---------------------------- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(-errno, "%s", path);
	close(fd);
}

/* Becomes slirp4netns when the parent has made its namespace and closed go. slirp4netns writes
 * to ready. */
static __attribute__((noreturn)) void serve_namespace(int go, int ready)
{
	char number[16], flag[32], byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(read(go, &byte, 1));
	silence(STDOUT_FILENO);
	silence(STDERR_FILENO);
	fcntl(ready, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", getppid());
	snprintf(flag, sizeof(flag), "--ready-fd=%d", ready);
	execlp("slirp4netns", "slirp4netns", "--configure", "--mtu=65520", flag, number, "tap0",
	       (char *)NULL);
	_exit(127);
}

static void have_slirp(void)
{
	int go[2], ready[2];
	pid_t pid;
	char byte;

	if (pipe2(go, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		die(-errno, "pipe");
	pid = fork();
	if (pid < 0)
		die(-errno, "fork");
	if (!pid) {
		close(go[1]);
		serve_namespace(go[0], ready[1]);
	}
	close(ready[1]);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		die(-errno, "cannot make a user namespace");
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 0 1");
	write_file("/proc/self/gid_map", "0 0 1");
	close(go[1]);
	if (read(ready[0], &byte, 1) != 1)
		die(0, "slirp4netns ended while it started");
}

void guest_become(enum way way, const char *program, const char *const *argv)
{
	/*
	 * When root starts it, Debian 12's pasta changes to the user nobody, and then cannot
	 * open its own files in /proc, so that it has no connection: --runas avoids this. Its
	 * warnings, which do not matter here, are not shown.
	 */
	static const char *const pasta[] = { "pasta", "--quiet", "--config-net", "--runas", "0:0",
					     "--",    NULL };
	static const char *const nothing[] = { NULL };
	char path[4200];
	const char *const guise[] = { path, "run", "--mode", "tun", "--", NULL };

	switch (way) {
	case WAY_TUN:
		if (!find_guise(path, sizeof(path)))
			die(0, "no guise beside this program");
		execute(guise, program, argv);
	case WAY_PASTA:
		silence(STDERR_FILENO);
		execute(pasta, program, argv);
	case WAY_SLIRP:
		have_slirp();
		execute(nothing, program, argv);
	default:
		die(0, "no way for a program that cannot be preloaded");
	}
}
