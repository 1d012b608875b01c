// SPDX-License-Identifier: GPL-2.0-only
/*
 * The trace of sockets, with GUISE_TRACE=1 (guise run --trace-calls): a line on standard
 * error for each socket that is made, by a call of libc's or a raw one, which says on which
 * stack it is and why; and at the end a line for each that escaped. What dup, accept, fork,
 * exec and SCM_RIGHTS make of a socket of the stack is on the stack, too.
 *
 * errno is left as it was, because the hook goes on afterwards.
 */
#include "preload/trace.h"

#include "preload/preload.h"

#include "host/sys.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TYPE_MASK 0xf /* as in socket.c: the rest of type are flags */

static bool wanted(void)
{
	static int known = -1;

	if (known < 0) {
		const char *value = secure_getenv("GUISE_TRACE");

		known = value && value[0] == '1' && !value[1];
	}
	return known;
}

struct name {
	int number;
	const char *name;
};

#define NAME(x) { x, #x }

static const struct name families[] = {
	NAME(AF_UNIX),  NAME(AF_INET),    NAME(AF_INET6),     NAME(AF_PACKET), NAME(AF_NETLINK),
	NAME(AF_ALG),   NAME(AF_VSOCK),   NAME(AF_BLUETOOTH), NAME(AF_CAN),    NAME(AF_KEY),
	NAME(AF_TIPC),  NAME(AF_XDP),     NAME(AF_RDS),       NAME(AF_RXRPC),  NAME(AF_KCM),
	NAME(AF_PPPOX), NAME(AF_QIPCRTR),
};

static const struct name types[] = {
	NAME(SOCK_STREAM), NAME(SOCK_DGRAM), NAME(SOCK_RAW), NAME(SOCK_SEQPACKET), NAME(SOCK_RDM),
};

static const struct name netlinks[] = {
	NAME(NETLINK_ROUTE),   NAME(NETLINK_SOCK_DIAG), NAME(NETLINK_NETFILTER),
	NAME(NETLINK_GENERIC), NAME(NETLINK_XFRM),      NAME(NETLINK_KOBJECT_UEVENT),
	NAME(NETLINK_AUDIT),   NAME(NETLINK_CONNECTOR), NAME(NETLINK_SELINUX),
	NAME(NETLINK_CRYPTO),
};

#define NAMED(list, number, room) named(list, sizeof(list) / sizeof((list)[0]), number, room)

static const char *named(const struct name *list, size_t n, int number, char room[16])
{
	for (size_t i = 0; i < n; i++)
		if (list[i].number == number)
			return list[i].name;
	snprintf(room, 16, "%d", number);
	return room;
}

static const char *why(int family, bool stacks)
{
	switch (family) {
	case AF_INET:
	case AF_INET6:
		return "it carries IP";
	case AF_PACKET:
		return "its frames are those of the stack's interfaces";
	case AF_NETLINK:
		return stacks ? "this family of netlink is about networking"
			      : "this family of netlink is not about networking";
	case AF_UNIX:
		return "it does not leave the host";
	default:
		return stacks ? "it would leave through IP, or is an extension's"
			      : "it carries no IP";
	}
}

void trace_socket(const char *call, int family, int type, int protocol, long result, bool stacks)
{
	char room[3][16], outcome[64];
	int before = errno;

	if (!wanted())
		return;
	if (result < 0)
		snprintf(outcome, sizeof(outcome), "%s", strerrorname_np((int)-result));
	else
		snprintf(outcome, sizeof(outcome), "%ld", result);
	preload_say("[%ld] %s(%s, %s, %s) = %s: the %s's, for %s", host_sys(SYS_getpid), call,
		    NAMED(families, family, room[0]), NAMED(types, type & TYPE_MASK, room[1]),
		    family == AF_NETLINK ? NAMED(netlinks, protocol, room[2])
					 : named(NULL, 0, protocol, room[2]),
		    outcome, stacks ? "stack" : "host", why(family, stacks));
	errno = before;
}

void trace_accept(int listener, int fd)
{
	int before = errno;

	if (!wanted())
		return;
	preload_say("[%ld] accept(%d) = %d: the stack's, for %d is", host_sys(SYS_getpid), listener,
		    fd, listener);
	errno = before;
}

void trace_escaped(int fd)
{
	if (wanted())
		preload_say(
			"[%ld] %d is the host's at the end: it escaped, by a call that guise did "
			"not see",
			host_sys(SYS_getpid), fd);
}
