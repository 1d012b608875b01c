// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets that escaped: sockets of the host's stack that a process got in spite of guise,
 * by raw system calls that were not seen (trap.c), or in a way that guise overlooks.
 *
 * What is counted are the sockets of families that carry IP among the descriptors that a
 * process has when it ends, less the number that it had when it joined (systemd and inetd
 * pass listeners to programs). A socket that was closed before is not counted; nor are
 * those of a process that is killed, or ends by _exit().
 */
#include "preload/preload.h"

#include "host/sys.h"
#include "region/stack.h"
#include "preload/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

static unsigned int had;

static bool carries_ip(int fd)
{
	int family = 0;
	socklen_t len = sizeof(family);

	if (host_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
		return false;
	return family == AF_INET || family == AF_INET6 || family == AF_PACKET;
}

/* trace: says each. */
static unsigned int host_sockets(bool trace)
{
	_Alignas(struct dirent64) char records[2048];
	unsigned int count = 0;
	long dir, n, at;

	dir = host_sys(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0;
	while ((n = host_sys(SYS_getdents64, dir, records, sizeof(records))) > 0)
		for (at = 0; at < n; at += ((struct dirent64 *)(void *)(records + at))->d_reclen) {
			const struct dirent64 *e = (const void *)(records + at);
			int fd = atoi(e->d_name);

			if (*e->d_name == '.' || preload_own_fd(fd) || !carries_ip(fd))
				continue;
			count++;
			if (trace)
				trace_escaped(fd);
		}
	host_sys(SYS_close, dir);
	return count;
}

void preload_escaped_begin(void)
{
	had = host_sockets(false);
}

__attribute__((destructor)) static void look(void)
{
	unsigned int have;

	if (!preload.stack || preload.pid != host_sys(SYS_getpid))
		return;
	have = host_sockets(false);
	if (have > had && !had)
		host_sockets(true);
	if (have > had)
		__atomic_fetch_add(&preload.stack->region->escaped, have - had, __ATOMIC_RELAXED);
}
