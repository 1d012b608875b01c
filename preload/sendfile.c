// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendfile and splice, which move data between two descriptors.
 *
 * A file of the host and a socket of the stack have no kernel in common, so
 * sendfile() reads and sends, in pieces of a size that stays in the cache. The
 * file's position, or the caller's offset, moves by what was sent, also when
 * the socket takes less than was read. Files that have no positions (pipes,
 * sockets) are refused with EINVAL, as the kernel refuses most of them.
 *
 * splice() copies as well: it looks at what the source has (MSG_PEEK, tee()),
 * writes it, and takes from the source as much as was written, so that nothing
 * is lost when the other end takes less. Two threads that read one source at
 * the same time would see the same data twice.
 */
#include "cancel.h"
#include "host/probe.h"
#include "host/sys.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define PIECE 65536
#define MOST  0x7ffff000 /* the kernel's own limit of one call */

/* n bytes of the file, through the piece: how many were sent, or -errno. */
static ssize_t send_pieces(int sfd, int in, off64_t from, size_t n, char *piece)
{
	size_t sent = 0;
	long ret = 0;

	while (sent < n) {
		size_t want = n - sent < PIECE ? n - sent : PIECE;
		long got = host_sys(SYS_pread64, in, piece, want, from + (off64_t)sent);

		ret = got;
		if (got <= 0)
			break;
		ret = guise_call(preload.stack, GUISE_NR_sendto, sfd, (long)piece, got,
				 sent + (size_t)got < n ? MSG_MORE : 0, 0, 0);
		if (ret <= 0)
			break;
		sent += (size_t)ret;
		if (ret < got)
			break;
	}
	return sent ? (ssize_t)sent : ret;
}

static ssize_t send_from(int sfd, int in, off64_t from, size_t n)
{
	char *piece = malloc(n < PIECE ? n : PIECE);
	ssize_t ret;

	if (!piece)
		return -ENOMEM;
	pthread_cleanup_push(free, piece);
	cancel_begin();
	ret = send_pieces(sfd, in, from, n, piece);
	cancel_end();
	pthread_cleanup_pop(1);
	return ret;
}

HOOK ssize_t sendfile64(int out, int in, off64_t *offset, size_t n)
{
	int from_stack = stack_fd(in), sfd = stack_fd(out);
	off64_t at, position;
	ssize_t sent;

	if (from_stack == IS_STALE)
		return preload_stale(in);
	if (from_stack != ON_HOST) {
		errno = EINVAL;
		return -1;
	}
	HOST_UNLESS_PRIVATE(sfd, out, sendfile64, in, offset, n);

	position = lseek64(in, 0, SEEK_CUR);
	if (position < 0)
		return (int)libc_result(errno == ESPIPE ? -EINVAL : -errno);
	if (offset && guise_writable(offset, sizeof(*offset)))
		return libc_result(-EFAULT);
	at = offset ? *offset : position;
	if (at < 0)
		return (int)libc_result(-EINVAL);
	if (!n)
		return 0;
	sent = send_from(sfd, in, at, n < MOST ? n : MOST);
	if (sent > 0 && offset)
		*offset = at + sent;
	else if (sent > 0)
		lseek64(in, at + sent, SEEK_SET);
	return libc_result(sent);
}

HOOK ssize_t sendfile(int out, int in, off_t *offset, size_t n) SAME_AS(sendfile64);

/* ---- splice: a pipe of the host at one end -------------------------------- */

static bool ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) == 1;
}

/* How much may be written to the pipe at once without waiting; 0 or -errno. */
static long pipe_room(int pipe, bool wait)
{
	int held;
	long size = host_sys(SYS_fcntl, pipe, F_GETPIPE_SZ, 0);

	if (size < 0)
		return -EINVAL; /* no pipe */
	if (!ready(pipe, POLLOUT, wait ? -1 : 0))
		return wait ? -errno : -EAGAIN;
	if (host_sys(SYS_ioctl, pipe, FIONREAD, &held) < 0)
		return -EINVAL;
	return held ? PIPE_BUF : size;
}

/* What the pipe takes is consumed, no more. Whether the socket waits is its own
 * flag's to say, as on a host. */
static long splice_out(int sfd, int pipe, size_t n, char *piece, bool wait)
{
	long got, ret, room = pipe_room(pipe, wait);

	if (room < 0)
		return room;
	if ((long)n > room)
		n = (size_t)room;
	got = guise_call(preload.stack, GUISE_NR_recvfrom, sfd, (long)piece, (long)n, MSG_PEEK, 0,
			 0);
	if (got <= 0)
		return got;
	ret = host_sys(SYS_write, pipe, piece, got);
	if (ret == -EPIPE)
		raise(SIGPIPE);
	if (ret > 0)
		guise_call(preload.stack, GUISE_NR_recvfrom, sfd, (long)piece, ret, MSG_DONTWAIT, 0,
			   0);
	return ret;
}

/* What is in the pipe, without taking it out. */
static long look_into(int pipe, size_t n, char *piece, bool wait)
{
	int copy[2];
	long ret = host_sys(SYS_pipe2, copy, O_CLOEXEC);

	if (ret < 0)
		return ret;
	ret = host_sys(SYS_tee, pipe, copy[1], n, wait ? 0 : SPLICE_F_NONBLOCK);
	if (ret > 0)
		ret = host_sys(SYS_read, copy[0], piece, ret);
	host_sys(SYS_close, copy[0]);
	host_sys(SYS_close, copy[1]);
	return ret;
}

static long splice_in(int pipe, int sfd, size_t n, char *piece, unsigned int flags)
{
	bool wait = !(flags & SPLICE_F_NONBLOCK);
	long got, ret;

	if (host_sys(SYS_fcntl, pipe, F_GETPIPE_SZ, 0) < 0)
		return -EINVAL;
	/* A pipe that does not wait is said by its own flag as well. */
	wait = wait && !(host_sys(SYS_fcntl, pipe, F_GETFL, 0) & O_NONBLOCK);
	if (wait && !ready(pipe, POLLIN, -1))
		return -errno;
	got = look_into(pipe, n, piece, wait);
	if (got <= 0)
		return got;
	ret = guise_call(preload.stack, GUISE_NR_sendto, sfd, (long)piece, got,
			 flags & SPLICE_F_MORE ? MSG_MORE : 0, 0, 0);
	if (ret > 0)
		host_sys(SYS_read, pipe, piece, ret);
	return ret;
}

static long splice_piece(int pipe, int sfd, bool in, size_t n, unsigned int flags)
{
	char *piece = malloc(n);
	long ret;

	if (!piece)
		return -ENOMEM;
	pthread_cleanup_push(free, piece);
	cancel_begin();
	ret = in ? splice_in(pipe, sfd, n, piece, flags)
		 : splice_out(sfd, pipe, n, piece, !(flags & SPLICE_F_NONBLOCK));
	cancel_end();
	pthread_cleanup_pop(1);
	return ret;
}

HOOK ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n,
		    unsigned int flags)
{
	int from = stack_fd(in), to = stack_fd(out);
	if (from == IS_STALE || to == IS_STALE)
		return preload_stale(from == IS_STALE ? in : out);
	if (from == ON_HOST && to == ON_HOST)
		return HOST(splice)(in, in_offset, out, out_offset, n, flags);
	if (!n)
		return 0;
	if (flags & ~(unsigned int)(SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE |
				    SPLICE_F_GIFT) ||
	    (from != ON_HOST && to != ON_HOST))
		return libc_result(-EINVAL);
	if (host_sys(SYS_fcntl, from == ON_HOST ? in : out, F_GETFD) < 0)
		return libc_result(-EBADF);
	if (from == ON_HOST ? in_offset : out_offset)
		return libc_result(-ESPIPE);
	if (in_offset || out_offset)
		return libc_result(-EINVAL);
	n = n < PIECE ? n : PIECE;
	return libc_result(from == ON_HOST ? splice_piece(in, to, true, n, flags)
					   : splice_piece(out, from, false, n, flags));
}
