// SPDX-License-Identifier: GPL-2.0-only
/*
 * The passt backend: a stream (stream.c) at whose other end is a passt, which opens sockets
 * of the host for the packets in the frames.
 *
 * Two kinds of frames that passt does not handle correctly are not sent to it; nothing is
 * lost by this.
 *
 *   - Debian 12's passt hangs when it reads several frames together, of which the first
 *     opens a TCP connection and another belongs to the same connection. That is a SYN that
 *     was sent again before passt had read the first. Such a SYN is dropped: a stream loses
 *     nothing, so the first SYN will arrive. openings.h has the place of each SYN in the
 *     stream; SIOCOUTQ says how much passt has not read yet, rather more than less.
 *   - passt sends its answers to the address from which the last packet came. After a packet
 *     from :: all answers would be lost. IPv6 sends these to find out whether an address is
 *     in use. No other host could answer, so such a packet is dropped.
 *
 * passt ends with the stack: by itself when it learns that no process writes any more, and
 * otherwise it is killed. Its pid comes with its first frame, because the host's kernel tells
 * the sender. passt is the only process that has the other end. So while the socket has not
 * hung up, passt is there, and the pid is its own.
 *
 * The memory that members share for this follows that of the stream.
 */
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "link/openings.h"
#include "link/stream.h"
#include "region/confined.h"

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

/* Whether passt may not have read the stream as far as `end`. */
static bool may_be_unread(const struct guise_stream *e, int fd, uint64_t end)
{
	int unread = 0;

	host_sys(SYS_ioctl, fd, SIOCOUTQ, &unread);
	return end + (uint64_t)unread > e->shared->written;
}

/* Whether it is an IPv6 packet without a source address. */
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

/* Receives what there is; until passt's pid is known, also the pid of the sender. */
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
		shared_of(e)->pid = writer.pid; /* 0 if this process is in another PID namespace */
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
	if (host_sys(SYS_ppoll, &hang_up, 1, &patience, NULL, 0) || !shared_of(e)->pid)
		return;
	if (guise_confined.kill_passt)
		guise_confined.kill_passt(shared_of(e)->pid);
	else
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
