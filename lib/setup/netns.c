// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network namespaces inside a stack: many hosts on one virtual CPU, with one
 * clock. A namespace is a descriptor of the stack; it exists while that is open,
 * or while a thread is in it. Each thread of a program can be in another one.
 * /proc/thread-self/net shows the one of the thread, /proc/net that of the
 * process's first thread.
 */
#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

static int open_ns(struct guise_stack *s, const char *path)
{
	int fd = (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0,
				 0, 0);

	return fd < 0 ? guise_fail(-fd, "open %s in the stack: %s", path, strerror(-fd)) : fd;
}

static int enter(struct guise_stack *s, int fd)
{
	int err = (int)guise_call(s, GUISE_NR_setns, fd, CLONE_NEWNET, 0, 0, 0, 0);

	return err ? guise_fail(-err, "cannot enter network namespace %d: %s", fd, strerror(-err))
		   : 0;
}

int guise_netns_enter(struct guise_stack *s, int fd)
{
	int first, err;

	if (fd >= 0)
		return enter(s, fd);
	first = open_ns(s, "/proc/1/ns/net");
	if (first < 0)
		return first;
	err = enter(s, first);
	guise_call(s, GUISE_NR_close, first, 0, 0, 0, 0, 0);
	return err;
}

/* The new namespace's lo is up, as in the first; the thread stays where it is. */
int guise_netns_new(struct guise_stack *s)
{
	int here, fd, err;

	here = open_ns(s, "/proc/thread-self/ns/net");
	if (here < 0)
		return here;
	fd = (int)guise_call(s, GUISE_NR_NETNS_NEW, 0, 0, 0, 0, 0, 0);
	if (fd < 0) {
		err = guise_fail(-fd, "cannot make a network namespace: %s", strerror(-fd));
		goto close_here;
	}
	err = enter(s, fd);
	if (!err) {
		err = guise_link_set(s, "lo", 1);
		if (enter(s, here) && !err)
			err = -EIO;
	}
	if (err)
		guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
close_here:
	guise_call(s, GUISE_NR_close, here, 0, 0, 0, 0, 0);
	return err ? err : fd;
}
