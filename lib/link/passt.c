// SPDX-License-Identifier: GPL-2.0-only
/*
 * The passt backend: a stream (stream.c) at whose other end is a passt, which opens sockets
 * of the host's own for what is in the frames.
 *
 * Two things that passt cannot bear are not sent to it, which costs nothing. Debian 12's
 * never returns from a batch of frames of which the first opens a TCP connection and
 * another is of the same: a SYN that was sent again before passt had read the first. Such
 * a SYN is dropped: the first is still on its way, for a stream loses nothing. (openings.h:
 * which SYN is where. SIOCOUTQ: how much is still to be read, and more rather than less.)
 * It also answers to the address that a packet came from last, and so everybody's answers
 * go nowhere after one from ::, which is how IPv6 asks whether an address is in use.
 * Nobody is there to say so, and the question is dropped.
 *
 * When the stack ends, passt does: on its own when it hears that nobody writes any more,
 * or else by force. Its pid comes with the first frame: the kernel says who wrote it. As
 * long as the socket has not hung up passt is there, for nobody else has the other end,
 * so the pid is still its own.
 *
 * What members share of this lies behind the stream's own part, in the same memory.
 */
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "link/openings.h"
#include "link/stream.h"

#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define PASST_PATIENCE 2000 /* ms, for its end */
#define IPV6_SOURCE    (ETH_HLEN + 8u)

struct passt_shared {
	struct guise_stream_shared stream;
	int32_t pid; /* 0: not known yet */
	struct guise_openings openings;
};

static struct passt_shared *shared_of(const struct guise_stream *e)
{
	return (struct passt_shared *)e->shared;
}

/* Whether the other end may not have read yet what ends there in the stream. */
static bool may_be_unread(const struct guise_stream *e, int fd, uint64_t end)
{
	int unread = 0;

	host_sys(SYS_ioctl, fd, SIOCOUTQ, &unread);
	return end + (uint64_t)unread > e->shared->written;
}

/* Whether it is a packet of IPv6 that has no source address. */
static bool from_nowhere(const struct guise_iov *iov, uint32_t n)
{
	static const uint8_t none[16];
	const uint8_t *frame = n > 1 ? iov[1].base : NULL;

	return frame && iov[1].len >= IPV6_SOURCE + sizeof(none) && frame[12] == ETH_P_IPV6 >> 8 &&
	       frame[13] == (ETH_P_IPV6 & 0xff) && !memcmp(frame + IPV6_SOURCE, none, sizeof(none));
}

static int64_t passt_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct guise_stream *e = port->state;
	uint64_t key = guise_opening_key(iov, n), end;
	int64_t ret;

	if (from_nowhere(iov, n))
		return (int64_t)GUISE_FRAME_HDR + guise_framing_length(iov, n);
	if (!key)
		return guise_stream_out(port, iov, n);
	end = guise_openings_end(&shared_of(e)->openings, key);
	if (end && may_be_unread(e, port->fd[0], end))
		return (int64_t)GUISE_FRAME_HDR + guise_framing_length(iov, n);
	ret = guise_stream_out(port, iov, n);
	if (ret > 0)
		guise_openings_note(&shared_of(e)->openings, key,
				    e->shared->written + e->shared->out.is.have);
	return ret;
}

static int set_credentials(int fd, int wanted)
{
	return (int)host_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_PASSCRED, &wanted, sizeof(wanted));
}

/* Takes in what there is, and until it is known, who wrote it. */
static long passt_receive(struct guise_stream *e, int fd, const struct iovec *iov)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	struct msghdr m = { .msg_control = control };
	size_t size = sizeof(control);
	struct cmsghdr *c;
	struct ucred writer;
	long ret;

	if (shared_of(e)->pid)
		return guise_counted_receive(&e->shared->receive, fd, iov, NULL, NULL);
	ret = guise_counted_receive(&e->shared->receive, fd, iov, control, &size);
	m.msg_controllen = size;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&writer, CMSG_DATA(c), sizeof(writer));
		shared_of(e)->pid = writer.pid; /* 0 where we are in another PID namespace */
		if (writer.pid)
			set_credentials(fd, 0);
	}
	return ret;
}

static int passt_attach(struct guise_stack *s, struct guise_link *link,
			struct guise_link_port *port)
{
	int err = guise_stream_attach(s, link, port, sizeof(struct passt_shared));

	if (!err)
		((struct guise_stream *)port->state)->receive = passt_receive;
	return err;
}

static int passt_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		      const char *spec)
{
	int err = guise_stream_open(s, link, port, spec, sizeof(struct passt_shared));

	if (err)
		return err;
	((struct guise_stream *)port->state)->receive = passt_receive;
	set_credentials(port->fd[0], 1);
	return 0;
}

static void passt_end(struct guise_link_port *port)
{
	struct guise_stream *e = port->state;
	struct pollfd hang_up = { .fd = port->fd[0] };
	struct timespec patience = { PASST_PATIENCE / 1000, PASST_PATIENCE % 1000 * 1000000L };

	host_sys(SYS_shutdown, port->fd[0], SHUT_WR);
	if (!host_sys(SYS_ppoll, &hang_up, 1, &patience, NULL, 0) && shared_of(e)->pid)
		host_sys(SYS_kill, shared_of(e)->pid, SIGKILL);
}

static void passt_epitaph(const struct guise_link *link, char *text, size_t size)
{
	guise_stream_lost(link, "passt", text, size);
}

const struct guise_link_backend guise_link_passt = {
	.room_by_pollout = true,
	.open = passt_open,
	.attach = passt_attach,
	.out = passt_out,
	.in = guise_stream_in,
	.flush = guise_stream_flush,
	.detach = guise_stream_detach,
	.end = passt_end,
	.epitaph = passt_epitaph,
};
