// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packet backend, with a Unix socket where its packet socket should be: every header that a
 * host's kernel could ever make up gets to lib/link/packet.c. Such a socket does not know the
 * longer virtio-net header, so the backend converts the short one, as on hosts before Linux 6.6.
 */
#include "wire.h"

#include "link/backends.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BUFFER (4 << 20)
#define SHORT  sizeof(struct virtio_net_hdr)
#define LONG   sizeof(struct virtio_net_hdr_v1)

static int far_end;

static const char *packet_missing(void)
{
	return NULL;
}

static int packet_open(struct guise_stack *s)
{
	int fd[2], size = BUFFER, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd))
		return guise_fail(errno, "no pair of sockets: %s", strerror(errno));
	/* As much as the host allows: less only means smaller portions. */
	for (int i = 0; i < 2; i++)
		if (setsockopt(fd[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
			setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	far_end = fd[1];
	err = wire_plug(s, &guise_link_packet, fd);
	return err ? err : guise_link_packet.attach(s, &s->region->links[0], &s->port[0]);
}

/* The short header lacks the number of buffers. The backend makes it 1: then that was fed. */
static enum feed packet_feed(const struct frame *f)
{
	size_t head = f->len < SHORT ? f->len : SHORT;
	struct iovec iov[2] = { { (void *)f->bytes, head }, { NULL, 0 } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	if (f->len >= LONG)
		memcpy((uint8_t *)f->bytes + SHORT, &(uint16_t){ 1 }, LONG - SHORT);
	if (f->len > LONG)
		iov[1] = (struct iovec){ (uint8_t *)f->bytes + LONG, f->len - LONG };
	if (sendmsg(far_end, &message, MSG_NOSIGNAL) >= 0)
		return FED;
	return errno == EAGAIN || errno == ENOBUFS ? FEED_FULL : FEED_REFUSED;
}

static int64_t packet_take(uint8_t *buf, uint32_t size)
{
	struct iovec iov[2] = { { buf, SHORT }, { buf + LONG, size - LONG } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n = recvmsg(far_end, &message, 0);

	return n < 0 ? -errno : n + (ssize_t)(LONG - SHORT);
}

const struct wire wire_packet = {
	.name = "packet",
	.what = "the packet backend, reading from a socket",
	.simulated = true,
	.exact = true,
	.missing = packet_missing,
	.open = packet_open,
	.feed = packet_feed,
	.take = packet_take,
};
