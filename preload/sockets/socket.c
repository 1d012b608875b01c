// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making sockets, naming them, and their options.
 *
 * A family goes to the stack when its packets would be IP's (or frames of the
 * stack's interfaces), also where its name does not show this: AF_SMC and
 * AF_RDS open TCP connections, AF_RXRPC is UDP. Those that the stack was not
 * built with then fail with EAFNOSUPPORT, as on a host without them; on the host's
 * side they would send through the host's stack.
 *
 * A family that is neither one of these nor known to be about this host or its devices may be
 * an extension's (docs/extensions.md): the stack is asked, and what it does not have is the
 * host's.
 */
#include "preload/wait/cancel.h"
#include "region/stack.h"
#include "preload/trace.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdlib.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define TYPE_MASK 0xf /* the rest of type are flags */

static bool netlink_is_the_stacks(int protocol)
{
	switch (protocol) {
	case NETLINK_ROUTE:
	case NETLINK_SOCK_DIAG:
	case NETLINK_NFLOG:
	case NETLINK_XFRM:
	case NETLINK_FIB_LOOKUP:
	case NETLINK_NETFILTER:
	case NETLINK_GENERIC:
		return true;
	default: /* uevent, audit, selinux, connector, crypto, rdma, ... */
		return false;
	}
}

enum whose { HOSTS, STACKS, ASK };

static enum whose whose_family(int family, int protocol)
{
	switch (family) {
	case AF_INET:
	case AF_INET6:
	case AF_PACKET:
	case AF_KEY:
	case AF_SMC:
	case AF_RDS:
	case AF_RXRPC:
	case AF_KCM:
	case AF_TIPC:
	case AF_PPPOX:
	case AF_XDP:
		return STACKS;
	case AF_NETLINK:
		return netlink_is_the_stacks(protocol) ? STACKS : HOSTS;
	case AF_UNIX:
	case AF_ALG:
	case AF_VSOCK:
	case AF_BLUETOOTH:
	case AF_CAN:
	case AF_NFC:
	case AF_QIPCRTR:
		return HOSTS;
	default:
		return family > 0 && family < AF_MAX ? ASK : HOSTS;
	}
}

/* GUISE_MPTCP=1: what asks for TCP gets Multipath TCP. */
static bool wants_mptcp(int family, int type, int protocol)
{
	static int wanted = -1;

	if (wanted < 0) {
		const char *value = secure_getenv("GUISE_MPTCP");

		wanted = value && value[0] == '1' && !value[1];
	}
	return wanted && (family == AF_INET || family == AF_INET6) &&
	       (type & TYPE_MASK) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
}

static long stack_socket(struct guise_stack *s, int family, int type, int protocol)
{
	static bool said;
	long sfd;

	if (wants_mptcp(family, type, protocol)) {
		sfd = guise_call(s, GUISE_NR_socket, family, type, IPPROTO_MPTCP, 0, 0, 0);
		if (sfd != -EPROTONOSUPPORT)
			return sfd;
		if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
			preload_say("GUISE_MPTCP=1, but this stack has no Multipath TCP: "
				    "using TCP");
	}
	return guise_call(s, GUISE_NR_socket, family, type, protocol, 0, 0, 0);
}

/* The descriptor, or -errno. */
static long private_socket(struct guise_stack *s, int family, int type, int protocol)
{
	long sfd = stack_socket(s, family, type & ~SOCK_CLOEXEC, protocol);
	int fd;

	if (sfd < 0)
		return sfd;
	fd = preload_reserve(type & SOCK_CLOEXEC);
	if (fd < 0) {
		guise_call(s, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
		return fd;
	}
	guise_count(s, GUISE_COUNT_SOCKETS, 1);
	return preload_install(fd, (int)sfd, GUISE_FD_PRIVATE);
}

HOOK int socket(int family, int type, int protocol)
{
	const enum whose whose = whose_family(family, protocol);
	struct guise_stack *s = whose == HOSTS ? NULL : preload_stack();
	long fd = -EAFNOSUPPORT;

	if (s)
		fd = private_socket(s, family, type, protocol);
	if (!s || (whose == ASK && fd == -EAFNOSUPPORT)) {
		fd = HOST(socket)(family, type, protocol);
		trace_socket("socket", family, type, protocol, fd < 0 ? -errno : fd, false);
		return (int)fd;
	}
	trace_socket("socket", family, type, protocol, fd, true);
	return (int)libc_result(fd);
}

/* The families that have pairs are the host's; the stack says why its own have none. */
HOOK int socketpair(int family, int type, int protocol, int pair[2])
{
	const enum whose whose = whose_family(family, protocol);
	struct guise_stack *s = whose == HOSTS ? NULL : preload_stack();
	long ret = -EAFNOSUPPORT;

	if (s)
		ret = guise_call(s, GUISE_NR_socketpair, family, type, protocol, (long)pair, 0, 0);
	if (!s || (whose == ASK && ret == -EAFNOSUPPORT)) {
		ret = HOST(socketpair)(family, type, protocol, pair);
		trace_socket("socketpair", family, type, protocol, ret < 0 ? -errno : pair[0],
			     false);
		return (int)ret;
	}
	trace_socket("socketpair", family, type, protocol, ret, true);
	return (int)libc_result(ret);
}

static void give_back(void *fd)
{
	preload_unreserve(*(int *)fd);
}

static int accept_inside(int listener, int sfd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int fd = preload_reserve(flags & SOCK_CLOEXEC);
	long new;

	if (fd < 0)
		return (int)libc_result(fd);
	pthread_cleanup_push(give_back, &fd);
	cancel_begin();
	new = guise_call(preload.stack, GUISE_NR_accept4, sfd, (long)addr, (long)len,
			 flags & ~SOCK_CLOEXEC, 0, 0);
	cancel_end();
	pthread_cleanup_pop(new < 0);
	if (new >= 0)
		new = preload_install(fd, (int)new, GUISE_FD_PRIVATE);
	if (new >= 0)
		trace_accept(listener, (int)new);
	return (int)libc_result(new);
}

HOOK int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, accept, addr, len);
	return accept_inside(fd, sfd, addr, len, 0);
}

HOOK int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, accept4, addr, len, flags);
	return accept_inside(fd, sfd, addr, len, flags);
}

HOOK int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, connect, addr, len);
	return (int)inside_waiting(GUISE_NR_connect, sfd, (long)addr, len, 0, 0, 0);
}

HOOK int __connect(int fd, const struct sockaddr *addr, socklen_t len) SAME_AS(connect);

HOOK int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, bind, addr, len);
	return (int)inside(GUISE_NR_bind, sfd, (long)addr, len, 0, 0, 0);
}

HOOK int listen(int fd, int backlog)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, listen, backlog);
	return (int)inside(GUISE_NR_listen, sfd, backlog, 0, 0, 0, 0);
}

HOOK int shutdown(int fd, int how)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, shutdown, how);
	return (int)inside(GUISE_NR_shutdown, sfd, how, 0, 0, 0, 0);
}

HOOK int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, getsockname, addr, len);
	return (int)inside(GUISE_NR_getsockname, sfd, (long)addr, (long)len, 0, 0, 0);
}

HOOK int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, getpeername, addr, len);
	return (int)inside(GUISE_NR_getpeername, sfd, (long)addr, (long)len, 0, 0, 0);
}

HOOK int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, getsockopt, level, name, value, len);
	return (int)inside(GUISE_NR_getsockopt, sfd, level, name, (long)value, (long)len, 0);
}

HOOK int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, setsockopt, level, name, value, len);
	return (int)inside(GUISE_NR_setsockopt, sfd, level, name, (long)value, len, 0);
}
