// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stream backend: frames over a Unix stream socket, with the framing of passt and
 * QEMU (-netdev stream; framing.h). To connect to a socket needs no privilege, so this
 * is a way out for users without root.
 *
 * spec: "PATH" connects to the socket of that path; "fd=N" copies a connected one.
 * passt.c is the same for a passt, about which more is known; the functions that it uses
 * have the prefix guise_stream_ (stream.h).
 *
 * A read or a write of a stream may end in the middle of a frame. The next carrier, which
 * may be in another process, needs the part of the frame that was moved. So both buffers
 * are in a memfd that all members map: descriptor [1], beside the socket [0]. The virtual
 * CPU is their lock. The carrier may be killed at any moment, also between a call that
 * moved bytes and the store of how many it moved. So the host's kernel itself writes their
 * number into that memory (counted.h), and the next carrier continues behind them.
 *
 * In: one read gets as many frames as there are, and the port gets them one after the
 * other. There is another read only when no whole frame is left. So when `in` returns
 * -EAGAIN, the buffer has less than a frame, and everything else is still in the socket,
 * where polling finds it.
 *
 * Out: small frames are gathered, and written before the virtual CPU is given up
 * (`flush`), or when there are many. A big frame is written at once, without a copy. What
 * the socket does not take stays, and waits for POLLOUT; when there is no room for another
 * frame, the port's queue stops.
 *
 * Without a virtio-net header, checksums and segmentation cannot be left to the other side:
 * the stack does both. If the peer ends, or sends lengths that are not valid, the link is
 * lost: its interface has no carrier any more.
 *
 * Limits: real time only, as for a pair. Frames that were gathered or half written when the
 * last process with the link is killed are lost, as on a wire.
 */
#include "link/stream.h"
#include "host/memory.h"
#include "host/fd.h"
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#define STREAM_READS 4        /* in one call: much input must not keep the virtual CPU */
#define STREAM_BIG   8192u    /* written at once ... */
#define STREAM_MANY  65536u   /* ... as is this much of small ones */
#define STREAM_IOV   (20 + 2) /* the port's most: MAX_SKB_FRAGS and both heads */

static uint32_t note_sent(struct guise_stream_shared *b)
{
	uint32_t bytes = guise_counted(&b->send);

	b->written = b->before + bytes;
	return bytes;
}

/* The caller has to note the end of the call: by guise_framing_gone() or _put(). */
static int64_t stream_send(struct guise_stream *e, int fd, const struct iovec *iov, size_t n)
{
	struct guise_stream_shared *b = e->shared;
	int64_t ret;

	b->before = b->written;
	guise_counted_begin(&b->send);
	guise_framing_begin(&b->out);
	ret = guise_counted_send(&b->send, fd, iov, n);
	note_sent(b);
	return ret;
}

/*
 * The thread that was sending has been killed. If it was sending from the buffer, this notes
 * how much it has sent. If the buffer is empty, it was sending a frame of the port, and the
 * port's call is made again with the same frame (lib/region/finish.c): returns how many bytes
 * of that frame were sent.
 */
static uint32_t take_over(struct guise_stream *e)
{
	struct guise_framing *out = &e->shared->out;
	uint32_t bytes = note_sent(e->shared);

	if (!out->is.have)
		return bytes;
	guise_framing_gone(out, bytes);
	return 0;
}

int64_t guise_stream_flush(struct guise_link_port *port)
{
	struct guise_stream *e = port->state;
	struct guise_framing *out = &e->shared->out;
	struct guise_iov due;
	int64_t ret;

	if (out->is.under_way)
		take_over(e);
	while ((due = guise_framing_due(out)).len) {
		struct iovec iov = { due.base, due.len };

		ret = stream_send(e, port->fd[0], &iov, 1);
		if (ret >= 0)
			guise_framing_gone(out, (uint32_t)ret);
		else /* The peer is gone, as `in` will find: the rest is dropped. */
			guise_framing_gone(out, ret == -EAGAIN ? 0 : (uint32_t)due.len);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static bool waits_for_room(const struct guise_stream *e)
{
	return __atomic_load_n(&e->region->vcpu->tx_blocked, __ATOMIC_RELAXED) & e->bit;
}

static void hold(const struct guise_stream *e)
{
	__atomic_fetch_or(&e->region->vcpu->tx_held, e->bit, __ATOMIC_RELAXED);
}

/* Sends a big frame without a copy. Returns how many bytes of length and frame were sent. */
static int64_t send_at_once(struct guise_stream *e, int fd, const struct guise_iov *iov, uint32_t n,
			    uint32_t length)
{
	uint8_t head[GUISE_FRAMING_HEAD];
	struct iovec pieces[STREAM_IOV];

	guise_framing_head(head, length);
	pieces[0] = (struct iovec){ head, sizeof(head) };
	for (uint32_t i = 1; i < n; i++)
		pieces[i] = (struct iovec){ iov[i].base, iov[i].len };
	return stream_send(e, fd, pieces, n);
}

int64_t guise_stream_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct guise_stream *e = port->state;
	struct guise_framing *out = &e->shared->out;
	uint32_t length = guise_framing_length(iov, n);
	int64_t ret, sent;

	if (!length)
		return -EMSGSIZE;
	sent = out->is.under_way ? take_over(e) : 0;
	if (!sent && !out->is.have && length >= STREAM_BIG && n <= STREAM_IOV) {
		sent = send_at_once(e, port->fd[0], iov, n, length);
		if (sent < 0 && sent != -EAGAIN) {
			guise_framing_gone(out, 0);
			return sent;
		}
		if (sent < 0)
			sent = 0;
	}
	if (sent == (int64_t)(GUISE_FRAMING_HEAD + length)) {
		guise_framing_gone(out, 0);
		return (int64_t)GUISE_FRAME_HDR + length;
	}
	ret = guise_framing_put(out, iov, n, (uint32_t)sent);
	if (ret == -EAGAIN && !waits_for_room(e) && !guise_stream_flush(port))
		ret = guise_framing_put(out, iov, n, 0);
	if (ret > 0 && !waits_for_room(e)) {
		hold(e);
		if (out->is.have >= STREAM_MANY)
			guise_stream_flush(port); /* what is left is held */
	}
	return ret;
}

static long receive(struct guise_stream *e, int fd)
{
	struct guise_stream_shared *b = e->shared;
	struct guise_iov room = guise_framing_room(&b->in);
	struct iovec iov = { room.base, room.len };
	long ret;

	guise_counted_begin(&b->receive);
	guise_framing_begin(&b->in);
	if (e->receive)
		ret = e->receive(e, fd, &iov);
	else
		ret = guise_counted_receive(&b->receive, fd, &iov, NULL, NULL);
	guise_framing_came(&b->in, guise_counted(&b->receive));
	return ret;
}

int64_t guise_stream_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct guise_stream *e = port->state;
	struct guise_framing *in = &e->shared->in;
	int reads = 0;
	int64_t ret;

	if (in->is.under_way) /* by a thread that was killed */
		guise_framing_came(in, guise_counted(&e->shared->receive));
	for (;;) {
		ret = guise_framing_get(in, iov, n);
		if (ret >= 0)
			return ret;
		if (ret == -EBADMSG) {
			e->link->rx_malformed++;
			continue;
		}
		if (ret == -EPROTO) {
			/* Stored before the peer, and the process that watches it, can notice. */
			e->link->reason = in->bad;
			host_sys(SYS_shutdown, port->fd[0], SHUT_RDWR);
			return ret;
		}
		if (reads++ == STREAM_READS)
			return -EAGAIN;
		ret = receive(e, port->fd[0]);
		if (ret == -EINTR || ret == -EAGAIN)
			return -EAGAIN;
		if (ret <= 0)
			return ret ? ret : -EPIPE;
	}
}

int guise_stream_attach(struct guise_stack *s, struct guise_link *link,
			struct guise_link_port *port, size_t bytes)
{
	struct guise_stream *e;
	struct stat st;
	long addr;

	if (host_sys(SYS_fstat, port->fd[1], &st) < 0 || st.st_size < (long)bytes)
		return guise_fail(EINVAL, "%s: descriptor %d is not the memory of a stream",
				  link->kind, port->fd[1]);
	e = guise_pages(sizeof(*e));
	if (!e)
		return guise_fail(ENOMEM, "%s: out of memory", link->kind);
	addr = host_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd[1], 0);
	if (addr < 0 && addr > -4096) {
		guise_pages_free(e, sizeof(*e));
		return guise_fail((int)-addr, "%s: cannot map its buffers: %s", link->kind,
				  strerrordesc_np((int)-addr));
	}
	e->shared = (struct guise_stream_shared *)addr;
	e->bytes = bytes;
	e->region = s->region;
	e->link = link;
	e->bit = 1u << (link - s->region->links);
	port->state = e;
	return 0;
}

static int stream_attach(struct guise_stack *s, struct guise_link *link,
			 struct guise_link_port *port)
{
	return guise_stream_attach(s, link, port, sizeof(struct guise_stream_shared));
}

static int stream_connect(const char *kind, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	long fd, ret;

	if (!*path || strlen(path) >= sizeof(a.sun_path))
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no path of a socket (1 to %zu characters); "
				  "expected %s",
				  kind, path, sizeof(a.sun_path) - 1, guise_link_forms(kind));
	strcpy(a.sun_path, path);
	fd = host_sys(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return guise_fail((int)-fd, "%s: no socket: %s", kind, strerrordesc_np((int)-fd));
	ret = host_sys(SYS_connect, fd, &a, sizeof(a));
	if (!ret)
		return guise_fd_high((int)fd);
	host_sys(SYS_close, fd);
	return guise_fail((int)-ret,
			  "%s: cannot connect to %s: %s; expected a stream socket on "
			  "which passt or QEMU (-netdev stream,server=on) waits",
			  kind, path, strerrordesc_np((int)-ret));
}

static int stream_copy(const char *kind, const char *number)
{
	int type = 0, domain = 0, fd;
	socklen_t len = sizeof(int);
	char *end;
	long n = strtol(number, &end, 10);

	if (end == number || *end || n < 0 || n > INT32_MAX)
		return guise_fail(EINVAL,
				  "%s: fd=%s: expected the number of a connected Unix stream "
				  "socket",
				  kind, number);
	host_sys(SYS_getsockopt, n, SOL_SOCKET, SO_TYPE, &type, &len);
	host_sys(SYS_getsockopt, n, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	if (type != SOCK_STREAM || domain != AF_UNIX)
		return guise_fail(ENOTSOCK, "%s: fd=%ld is not a Unix stream socket", kind, n);
	fd = guise_fd_copy((int)n);
	if (fd < 0)
		return guise_fail(-fd, "%s: fd=%ld cannot be copied: %s", kind, n,
				  strerrordesc_np(-fd));
	return fd;
}

int guise_stream_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		      const char *spec, size_t bytes)
{
	const char *kind = link->kind;
	int fd, err;
	long ret;

	if (s->region->clock_mode == GUISE_CLOCK_SIM)
		return guise_fail(EINVAL,
				  "%s: a simulated stack has no link to the outside, whose time "
				  "is another",
				  kind);
	fd = strncmp(spec, "fd=", 3) ? stream_connect(kind, spec) : stream_copy(kind, spec + 3);
	if (fd < 0)
		return fd;
	port->fd[0] = fd;
	ret = guise_fd_shared("guise-stream", bytes);
	port->fd[1] = ret < 0 ? -1 : guise_fd_high((int)ret);
	err = ret < 0 ? guise_fail((int)-ret, "%s: no memory for its buffers: %s", kind,
				   strerrordesc_np((int)-ret))
		      : guise_stream_attach(s, link, port, bytes);
	for (int i = 0; i < GUISE_LINK_FDS && err; i++)
		if (port->fd[i] >= 0)
			host_sys(SYS_close, port->fd[i]);
	return err;
}

static int stream_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		       const char *spec)
{
	return guise_stream_open(s, link, port, spec, sizeof(struct guise_stream_shared));
}

void guise_stream_detach(struct guise_link_port *port)
{
	struct guise_stream *e = port->state;

	host_sys(SYS_munmap, e->shared, e->bytes);
	guise_pages_free(e, sizeof(*e));
	port->state = NULL;
}

void guise_stream_lost(const struct guise_link *link, const char *peer, char *text, size_t size)
{
	if (link->reason)
		snprintf(text, size,
			 "the link %s is lost: %s announced a frame of %u bytes, where %u is the "
			 "most, so nothing after it can be understood",
			 link->name, peer, link->reason, GUISE_FRAMING_MOST);
	else
		snprintf(text, size,
			 "the link %s is lost: %s has ended; what is connected over it waits as "
			 "behind a pulled cable, until the program is started again",
			 link->name, peer);
}

static void stream_epitaph(const struct guise_link *link, char *text, size_t size)
{
	guise_stream_lost(link, "the other end of its stream", text, size);
}

const struct guise_link_backend guise_link_stream = {
	.room_by_pollout = true,
	.open = stream_open,
	.attach = stream_attach,
	.out = guise_stream_out,
	.in = guise_stream_in,
	.flush = guise_stream_flush,
	.detach = guise_stream_detach,
	.epitaph = stream_epitaph,
};
