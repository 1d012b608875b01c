// SPDX-License-Identifier: GPL-2.0-only
/*
 * ioctl.
 *
 * A request on a private socket goes to the stack, except where it concerns the
 * number: close-on-exec and the receiver of signals are the host's.
 *
 * Programs ask for interfaces on any socket they have at hand, an AF_UNIX one
 * for instance; they mean the interfaces that their traffic will use. Such a
 * request on a host socket of AF_UNIX or AF_NETLINK is answered by the stack.
 * The host's other families (AF_CAN) have interfaces there.
 */
#include "preload/preload.h"

#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>

static bool about_interfaces(unsigned long request)
{
	return (request >= SIOCGIFNAME && request < SIOCPROTOPRIVATE) ||
	       (request >= SIOCDEVPRIVATE && request < SIOCDEVPRIVATE + 16);
}

static bool means_stack(int fd)
{
	int domain, saved = errno;
	socklen_t len = sizeof(domain);
	bool means;

	means = !HOST(getsockopt)(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
		(domain == AF_UNIX || domain == AF_NETLINK) && preload_stack();
	errno = saved;
	return means;
}

static int ask_stack(unsigned long request, void *arg)
{
	struct guise_stack *s = preload_stack();
	long ret, sfd = guise_call(s, GUISE_NR_socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0);

	if (sfd < 0)
		return (int)libc_result(sfd);
	ret = guise_call(s, GUISE_NR_ioctl, sfd, (long)request, (long)arg, 0, 0, 0);
	guise_call(s, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	return (int)libc_result(ret);
}

/* The stack's descriptor of a network namespace gets a number of the host. */
static long open_namespace(int sfd, unsigned long request)
{
	int fd = preload_reserve(true);
	long new;

	if (fd < 0)
		return fd;
	new = guise_call(preload.stack, GUISE_NR_ioctl, sfd, (long)request, 0, 0, 0, 0);
	if (new >= 0)
		return preload_install(fd, (int)new, GUISE_FD_PRIVATE);
	preload_unreserve(fd);
	return new;
}

HOOK int ioctl(int fd, unsigned long request, ...)
{
	int sfd = stack_fd(fd);
	void *arg;
	va_list ap;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);

	request = (unsigned int)request; /* as the kernel sees it */
	if (sfd < 0) {
		if (unlikely(about_interfaces(request)) && means_stack(fd))
			return ask_stack(request, arg);
		return HOST(ioctl)(fd, request, arg);
	}
	switch (request) {
	case FIOCLEX:
	case FIONCLEX:
	case FIOGETOWN:
	case SIOCGPGRP:
		return HOST(ioctl)(fd, request, arg);
	case FIOSETOWN:
	case SIOCSPGRP:
		preload_mark_shared(fd); /* the next socket must not have it */
		return HOST(ioctl)(fd, request, arg);
	case SIOCGSKNS:
	case TUNGETDEVNETNS:
		return (int)libc_result(open_namespace(sfd, request));
	case FIOASYNC: /* see O_ASYNC in descriptor.c */
		errno = EINVAL;
		return -1;
	default:
		return (int)inside(GUISE_NR_ioctl, sfd, (long)request, (long)arg, 0, 0, 0);
	}
}

HOOK int sockatmark(int fd)
{
	int mark, sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, sockatmark);
	if (inside(GUISE_NR_ioctl, sfd, SIOCATMARK, (long)&mark, 0, 0, 0) < 0)
		return -1;
	return mark;
}
