// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-holder --enter NET USER RESOLV HOSTS PROGRAM ARGV0 [ARG...]
 *
 * What `guise run` becomes before it becomes a guest (guests.c): a process may enter a
 * user namespace only while it has one thread, and Go's never has. NET and USER are
 * descriptors of namespaces, RESOLV and HOSTS of files with the text of the guest's
 * /etc/resolv.conf and /etc/hosts; "-" means that there is none. The rest is the program.
 *
 * The two files are mounted over the host's in a mount namespace of the guest's own, where
 * everything else is as on the host. If the host does not have the file there is nothing to
 * mount over, and guise says so.
 *
 * Privileges end with exec: the user has none in the new user namespace.
 */
#include "holder/guests/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAILED         125
#define NOT_EXECUTABLE 126
#define NOT_FOUND      127

extern char **environ;

/* Where files can be made for a moment; one that is there. */
static const char *const places[] = { "/tmp", "/run", "/mnt", "/var" };

static int fail(const char *what)
{
	fprintf(stderr, "guise: %s: %s\n", what, strerror(errno));
	return FAILED;
}

static int descriptor(const char *word)
{
	return strcmp(word, "-") ? atoi(word) : -1;
}

static bool copy(int from, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char buf[4096];
	ssize_t n = -1;

	if (to >= 0 && !fchmod(to, 0644))
		while ((n = read(from, buf, sizeof(buf))) > 0)
			if (write(to, buf, (size_t)n) != n)
				break;
	if (to >= 0)
		close(to);
	return !n;
}

/* Lays the file's text over path, by way of a file system in memory at place. */
static int lay(int fd, const char *place, const char *path)
{
	char file[64];

	if (fd < 0)
		return 0;
	snprintf(file, sizeof(file), "%s/text", place);
	unlink(file);
	if (!copy(fd, file))
		return fail("cannot write a file for the program");
	if (!mount(file, path, NULL, MS_BIND, NULL))
		return 0;
	if (errno != ENOENT)
		return fail(path);
	fprintf(stderr, "guise: there is no %s, so the program cannot be given one\n", path);
	return 0;
}

static int lay_files(int resolv, int hosts)
{
	size_t i = 0;
	int err;

	if (resolv < 0 && hosts < 0)
		return 0;
	if (unshare(CLONE_NEWNS))
		return fail("cannot make a mount namespace");
	/* What the host mounts is seen; what is mounted here stays here. */
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL))
		return fail("cannot have a mount namespace of its own");
	while (i < sizeof(places) / sizeof(places[0]) &&
	       mount("guise", places[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m"))
		i++;
	if (i == sizeof(places) / sizeof(places[0]))
		return fail("cannot mount a file system in memory");
	err = lay(resolv, places[i], "/etc/resolv.conf");
	if (!err)
		err = lay(hosts, places[i], "/etc/hosts");
	if (umount2(places[i], MNT_DETACH))
		return fail(places[i]);
	return err;
}

/* A script without #! is the shell's. */
static void execute_script(const char *path, char **argv, int argc)
{
	char **words = calloc((size_t)argc + 2, sizeof(*words));

	if (!words)
		return;
	words[0] = "sh";
	words[1] = (char *)path;
	for (int i = 1; i <= argc; i++)
		words[i + 1] = argv[i];
	execve("/bin/sh", words, environ);
	free(words);
}

bool enter_wanted(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "--enter");
}

int enter(int argc, char **argv)
{
	int net, user, resolv, hosts, err;
	const char *path;

	if (argc < 8) {
		fprintf(stderr, "usage: guise-holder --enter NET USER RESOLV HOSTS PROGRAM ARGV0 "
				"[ARG...]\nStarted by guise run.\n");
		return FAILED;
	}
	net = descriptor(argv[2]);
	user = descriptor(argv[3]);
	resolv = descriptor(argv[4]);
	hosts = descriptor(argv[5]);
	path = argv[6];
	if (user >= 0 && setns(user, CLONE_NEWUSER))
		return fail("cannot enter the program's user namespace");
	if (setns(net, CLONE_NEWNET))
		return fail("cannot enter the program's network namespace");
	err = lay_files(resolv, hosts);
	if (err)
		return err;
	for (int i = 2; i < 6; i++)
		if (descriptor(argv[i]) >= 0)
			close(descriptor(argv[i]));
	execve(path, argv + 7, environ);
	if (errno == ENOEXEC)
		execute_script(path, argv + 7, argc - 7);
	fprintf(stderr, "guise: cannot execute %s: %s\n", argv[7], strerror(errno));
	return errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}
