// SPDX-License-Identifier: GPL-2.0-only
/*
 * SCM_RIGHTS: private sockets on their way over AF_UNIX sockets of the host.
 *
 * The message carries the placeholder. Before it is sent, the private socket is deposited in
 * the stack under the placeholder's inode number; a member that receives a host socket asks
 * the stack for what was deposited under that socket's inode number. So a private
 * socket arrives in the same process or another one, even by way of a process that is
 * not on the stack, which sees a socket that was never connected. The stack drops a
 * deposited socket that no member takes, when it needs the room (kernel/handover.c).
 */
#include "preload/preload.h"

#include "guise/layout.h"
#include "host/probe.h"
#include "host/sys.h"

#include <string.h>

/* The kernel keeps to the length that the program says; so does this. */
static struct cmsghdr *next(const struct msghdr *m, struct cmsghdr *c)
{
	size_t at = c ? (size_t)((char *)c - (char *)m->msg_control) + CMSG_ALIGN(c->cmsg_len) : 0;

	if (at + sizeof(*c) > m->msg_controllen)
		return NULL;
	c = (struct cmsghdr *)((char *)m->msg_control + at);
	return c->cmsg_len < sizeof(*c) || c->cmsg_len > m->msg_controllen - at ? NULL : c;
}

/* Calls one() for each descriptor in the message's SCM_RIGHTS. */
static void each_right(const struct msghdr *m, void (*one)(int fd, int flags), int flags)
{
	struct cmsghdr *c = NULL;

	while ((c = next(m, c))) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (char *)c + at, sizeof(fd));
			one(fd, flags);
		}
	}
}

static void give(int fd, int flags)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);

	(void)flags;
	if (!(entry & GUISE_FD_PRIVATE) || preload_borrowed())
		return;
	preload_mark_shared(fd);
	guise_call(preload.stack, GUISE_NR_GIVE, entry & GUISE_FD_STACK, preload_inode(fd), fd, 0,
		   0, 0);
}

/* It was not sent after all. */
static void take_back(int fd, int flags)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);
	long sfd;

	(void)flags;
	if (!(entry & GUISE_FD_PRIVATE) || preload_borrowed())
		return;
	sfd = guise_call(preload.stack, GUISE_NR_TAKE, preload_inode(fd), 0, fd, 0, 0, 0);
	if (sfd >= 0)
		guise_call(preload.stack, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
}

static void take(int fd, int flags)
{
	uint32_t mark = preload_inode(fd);
	long sfd;
	struct guise_stack *s = mark ? preload_stack() : NULL;

	if (!s || preload_borrowed())
		return;
	sfd = guise_call(s, GUISE_NR_TAKE, mark, flags & MSG_PEEK, fd, 0, 0, 0);
	if (sfd >= 0 &&
	    preload_map_set(fd, (uint32_t)sfd | GUISE_FD_PRIVATE | GUISE_FD_SHARED, mark))
		guise_call(s, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
}

static bool has_rights(const struct msghdr *m)
{
	return preload.ticket >= 0 && !guise_readable(m, sizeof(*m)) && m->msg_control &&
	       !guise_readable(m->msg_control, m->msg_controllen);
}

void preload_rights_sending(const struct msghdr *m)
{
	if (has_rights(m))
		each_right(m, give, 0);
}

void preload_rights_not_sent(const struct msghdr *m)
{
	int saved = errno;

	if (has_rights(m))
		each_right(m, take_back, 0);
	errno = saved;
}

void preload_rights_received(const struct msghdr *m, int flags)
{
	int saved = errno;

	if (has_rights(m))
		each_right(m, take, flags);
	errno = saved;
}
