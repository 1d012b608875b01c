// SPDX-License-Identifier: GPL-2.0-only
/*
 * bindresvport: binds to a free port below 1024, as clients of rsh and NFS do.
 * libc's own binds inside libc. Ports from 512 on, beginning with another one
 * in each process.
 */
#include "preload/preload.h"

#include "host/sys.h"

#include <netinet/in.h>
#include <string.h>

#define FIRST 512
#define PORTS (IPPORT_RESERVED - FIRST)

HOOK int bindresvport(int fd, struct sockaddr_in *address)
{
	static unsigned int next;
	struct sockaddr_in any = { .sin_family = AF_INET };
	int sfd = stack_fd(fd), ret = -1;

	HOST_UNLESS_PRIVATE(sfd, fd, bindresvport, address);
	if (!address)
		address = &any;
	else if (address->sin_family != AF_INET)
		return (int)libc_result(-EAFNOSUPPORT);
	if (!next)
		next = (unsigned int)host_sys(SYS_getpid);
	for (unsigned int i = 0; i < PORTS; i++) {
		address->sin_port = htons((uint16_t)(FIRST + next++ % PORTS));
		ret = bind(fd, (struct sockaddr *)address, sizeof(*address));
		if (!ret || errno != EADDRINUSE)
			break;
	}
	return ret;
}
