// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendfile and splice, which move data between two descriptors.
 *
 * A file of the host and a socket of the stack have no kernel in common, so
 * sendfile() reads and sends, in pieces of a size that stays in the cache. The
 * file's position, or the caller's offset, moves by what was sent, also when
 * the socket takes less than was read. Files that have no positions (pipes,
 * sockets) are refused, as the kernel refuses them, except that a socket may be
 * sent into a pipe.
 *
 * splice() copies as well: it looks at what the source has (MSG_PEEK, tee()),
 * writes it, and takes from the source as much as was written, so that nothing
 * is lost when the other end takes less. Two threads that read one source at
 * the same time would see the same data twice.
 */
#include "preload/wait/cancel.h"
#include "host/memory.h"
#include "host/probe.h"
#include "host/signal.h"
#include "host/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
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
	struct guise_room room = { .bytes = n < PIECE ? n : PIECE };
	ssize_t ret;

	room.at = guise_room_take(room.bytes);
	if (!room.at)
		return -ENOMEM;
	pthread_cleanup_push(guise_room_leave, &room);
	ret = send_pieces(sfd, in, from, n, room.at); /* no cancellation point, as in libc */
	pthread_cleanup_pop(1);
	return ret;
}

/* How a descriptor of the host was opened (O_RDONLY, ...), or -EBADF. */
static long access_of(int fd)
{
	long flags = host_sys(SYS_fcntl, fd, F_GETFL, 0);

	return flags < 0 || flags & O_PATH ? -EBADF : flags & O_ACCMODE;
}

static bool is_pipe(int fd)
{
	return host_sys(SYS_fcntl, fd, F_GETPIPE_SZ, 0) >= 0;
}

/* What the kernel looks at before it moves anything, in its order: 0 or -errno. */
static long verify(int out, bool to_stack, int in, bool from_stack, const off64_t *offset, size_t n)
{
	long in_access = from_stack ? O_RDWR : access_of(in);
	long out_access = to_stack ? O_RDWR : access_of(out);

	if (offset && guise_readable(offset, sizeof(*offset)))
		return -EFAULT;
	if (in_access < 0 || in_access == O_WRONLY)
		return -EBADF;
	if (offset && (from_stack || host_sys(SYS_lseek, in, 0, SEEK_CUR) < 0))
		return -ESPIPE;
	if ((ssize_t)n < 0 || (offset && *offset < 0))
		return -EINVAL;
	return out_access < 0 || out_access == O_RDONLY ? -EBADF : 0;
}

/* From a file of the host to the stack. */
static ssize_t send_file(int sfd, int in, off64_t *offset, size_t n)
{
	off64_t at, position = host_sys(SYS_lseek, in, 0, SEEK_CUR);
	ssize_t sent;

	if (position < 0)
		return -EINVAL;
	if (!n)
		return 0;
	at = offset ? *offset : position;
	sent = send_from(sfd, in, at, n < MOST ? n : MOST);
	if (sent == -EISDIR)
		return -EINVAL;
	if (offset && guise_writable(offset, sizeof(*offset)))
		return -EFAULT;
	if (sent > 0 && offset)
		*offset = at + sent;
	else if (sent > 0)
		host_sys(SYS_lseek, in, at + sent, SEEK_SET);
	return sent;
}

HOOK ssize_t sendfile64(int out, int in, off64_t *offset, size_t n)
{
	int from = stack_fd(in), to = stack_fd(out);
	long err;

	if (from == IS_STALE || to == IS_STALE)
		return preload_stale(from == IS_STALE ? in : out);
	if (from == ON_HOST && to == ON_HOST)
		return HOST(sendfile64)(out, in, offset, n);
	err = verify(out, to != ON_HOST, in, from != ON_HOST, offset, n);
	if (err)
		return libc_result(err);
	if (from == ON_HOST)
		return libc_result(send_file(to, in, offset, n));
	/* A socket has no positions: into a pipe only. */
	if (to != ON_HOST || !is_pipe(out))
		return libc_result(-EINVAL);
	return splice(in, NULL, out, NULL, n,
		      host_sys(SYS_fcntl, out, F_GETFL, 0) & O_NONBLOCK ? SPLICE_F_NONBLOCK : 0);
}

HOOK ssize_t sendfile(int out, int in, off_t *offset, size_t n) SAME_AS(sendfile64);

/* ---- splice: a pipe of the host at one end -------------------------------- */

/* Waits as the host's splice() does: poll() is never restarted, this is where handlers have
 * SA_RESTART. */
static long await(int pipe, short events, bool wait)
{
	struct pollfd p = { .fd = pipe, .events = events };
	int ready;

	do {
		guise_signals.ending = 0;
		ready = poll(&p, 1, wait ? -1 : 0);
	} while (ready < 0 && errno == EINTR && !guise_signals.ending);
	if (ready < 0)
		return -errno;
	return ready ? 0 : -EAGAIN;
}

/* How much may be written to the pipe at once without waiting; 0 or -errno. */
static long pipe_room(int pipe, bool wait)
{
	int held;
	long err, size = host_sys(SYS_fcntl, pipe, F_GETPIPE_SZ, 0);

	if (size < 0)
		return -EINVAL; /* no pipe */
	err = await(pipe, POLLOUT, wait);
	if (err)
		return err;
	if (host_sys(SYS_ioctl, pipe, FIONREAD, &held) < 0)
		return -EINVAL;
	return held ? PIPE_BUF : size;
}

/* At a byte of TCP's urgent data that has come: there splice() ends, where recv() steps over it. */
static bool is_at_mark(int sfd)
{
	struct pollfd p = { .fd = sfd, .events = POLLPRI };
	const struct timespec at_once = { 0 };
	int at = 0;

	return !guise_call(preload.stack, GUISE_NR_ioctl, sfd, SIOCATMARK, (long)&at, 0, 0, 0) &&
	       at &&
	       guise_call(preload.stack, GUISE_NR_ppoll, (long)&p, 1, (long)&at_once, 0, 0, 0) == 1;
}

/* What the pipe takes is consumed, no more. Whether the socket waits is its own
 * flag's to say, as on a host. */
static long splice_out(int sfd, int pipe, size_t n, char *piece, bool wait)
{
	long got, ret, room = pipe_room(pipe, wait);

	if (room < 0)
		return room;
	if (is_at_mark(sfd))
		return 0;
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
	got = wait ? await(pipe, POLLIN, true) : 0;
	if (got)
		return got;
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
	struct guise_room room = { .bytes = n };
	long ret;

	room.at = guise_room_take(n);
	if (!room.at)
		return -ENOMEM;
	pthread_cleanup_push(guise_room_leave, &room);
	cancel_begin();
	ret = in ? splice_in(pipe, sfd, n, room.at, flags)
		 : splice_out(sfd, pipe, n, room.at, !(flags & SPLICE_F_NONBLOCK));
	cancel_end();
	pthread_cleanup_pop(1);
	return ret;
}

/* As verify(): the host's end must be a pipe, the stack's has no positions. */
static long verify_splice(int host, bool reads, const off64_t *host_offset,
			  const off64_t *stack_offset)
{
	long access = access_of(host);
	bool pipe = is_pipe(host);

	if (access < 0)
		return access;
	if (pipe && host_offset)
		return -ESPIPE;
	if ((host_offset && guise_readable(host_offset, sizeof(*host_offset))) ||
	    (stack_offset && guise_readable(stack_offset, sizeof(*stack_offset))))
		return -EFAULT;
	if (access == (reads ? O_WRONLY : O_RDONLY))
		return -EBADF;
	return !pipe || stack_offset ? -EINVAL : 0;
}

HOOK ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n,
		    unsigned int flags)
{
	int from = stack_fd(in), to = stack_fd(out);
	long err;

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
	err = verify_splice(from == ON_HOST ? in : out, from == ON_HOST,
			    from == ON_HOST ? in_offset : out_offset,
			    from == ON_HOST ? out_offset : in_offset);
	if (err)
		return libc_result(err);
	n = n < PIECE ? n : PIECE;
	return libc_result(from == ON_HOST ? splice_piece(in, to, true, n, flags)
					   : splice_piece(out, from, false, n, flags));
}
