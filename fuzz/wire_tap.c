// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tap backend, with a socket where its descriptor should be. What a host's
 * kernel writes into a tap is well-formed; through a socket, every byte that a
 * read could ever bring gets to lib/link/tap.c.
 */
#include "wire.h"

#include "link/backends.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define BUFFER (4 << 20)

static int far_end;

static const char *tap_missing(void)
{
	return NULL;
}

static int tap_open(struct guise_stack *s)
{
	int fd[2], size = BUFFER;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd))
		return guise_fail(errno, "no pair of sockets: %s", strerror(errno));
	/* As much as the host allows: less only means smaller portions. */
	for (int i = 0; i < 2; i++)
		if (setsockopt(fd[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
			setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	far_end = fd[1];
	return wire_plug(s, &guise_link_tap, fd);
}

static enum feed tap_feed(const struct frame *f)
{
	if (send(far_end, f->bytes, f->len, MSG_NOSIGNAL) >= 0)
		return FED;
	return errno == EAGAIN || errno == ENOBUFS ? FEED_FULL : FEED_REFUSED;
}

static int64_t tap_take(uint8_t *buf, uint32_t size)
{
	ssize_t n = recv(far_end, buf, size, 0);

	return n < 0 ? -errno : n;
}

const struct wire wire_tap = {
	.name = "tap",
	.what = "the tap backend, reading from a socket",
	.simulated = true,
	.exact = true,
	.missing = tap_missing,
	.open = tap_open,
	.feed = tap_feed,
	.take = tap_take,
};
