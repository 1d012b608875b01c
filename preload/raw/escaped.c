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

struct sockets {
	unsigned int n;
	bool trace; /* say each */
};

static void count(int fd, void *data)
{
	struct sockets *found = data;

	if (!carries_ip(fd))
		return;
	found->n++;
	if (found->trace)
		trace_escaped(fd);
}

static unsigned int host_sockets(bool trace)
{
	struct sockets found = { 0, trace };

	preload_each_descriptor(count, &found);
	return found.n;
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
		guise_count(preload.stack, GUISE_COUNT_ESCAPED, have - had);
}
