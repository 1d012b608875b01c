// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendfile and splice, which move data between two descriptors.
 *
 * A file of the host and a socket of the stack have no kernel in common, so
 * sendfile() reads and sends, in pieces of a size that stays in the cache. The
 * file's position, or the caller's offset, moves by what was sent, also when
 * the socket takes less than was read. Files that have no positions (pipes,
 * sockets) are refused with EINVAL, as the kernel refuses most of them, and so
 * is splice(); programs then read and write themselves.
 */
#include "cancel.h"
#include "host/probe.h"
#include "host/sys.h"

#include <stdlib.h>
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

HOOK ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n,
		    unsigned int flags)
{
	int from = stack_fd(in), to = stack_fd(out);

	if (from == IS_STALE || to == IS_STALE)
		return preload_stale(from == IS_STALE ? in : out);
	if (from == ON_HOST && to == ON_HOST)
		return HOST(splice)(in, in_offset, out, out_offset, n, flags);
	errno = EINVAL;
	return -1;
}
