// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving data. The stack reads and writes the program's buffers itself, bad
 * ones give EFAULT; so all there is to do here is to find the descriptor.
 * What only makes sense with a position in a file, the stack refuses (ESPIPE).
 */
#include "preload/wait/cancel.h"
#include "host/probe.h"

HOOK ssize_t read(int fd, void *buf, size_t n)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, read, buf, n);
	return inside_waiting(GUISE_NR_read, sfd, (long)buf, (long)n, 0, 0, 0);
}

HOOK ssize_t write(int fd, const void *buf, size_t n)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, write, buf, n);
	return inside_waiting(GUISE_NR_write, sfd, (long)buf, (long)n, 0, 0, 0);
}

HOOK ssize_t readv(int fd, const struct iovec *iov, int n)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, readv, iov, n);
	return inside_waiting(GUISE_NR_readv, sfd, (long)iov, n, 0, 0, 0);
}

HOOK ssize_t writev(int fd, const struct iovec *iov, int n)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, writev, iov, n);
	return inside_waiting(GUISE_NR_writev, sfd, (long)iov, n, 0, 0, 0);
}

HOOK ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, recv, buf, n, flags);
	return inside_waiting(GUISE_NR_recvfrom, sfd, (long)buf, (long)n, flags, 0, 0);
}

HOOK ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, send, buf, n, flags);
	return inside_waiting(GUISE_NR_sendto, sfd, (long)buf, (long)n, flags, 0, 0);
}

HOOK ssize_t recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, recvfrom, buf, n, flags, addr, len);
	return inside_waiting(GUISE_NR_recvfrom, sfd, (long)buf, (long)n, flags, (long)addr,
			      (long)len);
}

HOOK ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
		    socklen_t len)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, sendto, buf, n, flags, addr, len);
	return inside_waiting(GUISE_NR_sendto, sfd, (long)buf, (long)n, flags, (long)addr, len);
}

HOOK ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int sfd = stack_fd(fd);

	if (sfd == ON_HOST) {
		ssize_t n = HOST(recvmsg)(fd, message, flags);

		if (n >= 0 && message->msg_controllen)
			preload_rights_received(message, flags);
		return n;
	}
	HOST_UNLESS_PRIVATE(sfd, fd, recvmsg, message, flags);
	return inside_waiting(GUISE_NR_recvmsg, sfd, (long)message, flags, 0, 0, 0);
}

HOOK ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int sfd = stack_fd(fd);

	if (sfd == ON_HOST) {
		ssize_t n;

		preload_rights_sending(message);
		n = HOST(sendmsg)(fd, message, flags);
		if (n < 0)
			preload_rights_not_sent(message);
		return n;
	}
	HOST_UNLESS_PRIVATE(sfd, fd, sendmsg, message, flags);
	return inside_waiting(GUISE_NR_sendmsg, sfd, (long)message, flags, 0, 0, 0);
}

HOOK int recvmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags,
		  struct timespec *timeout)
{
	int sfd = stack_fd(fd);

	if (sfd == ON_HOST) {
		int received = HOST(recvmmsg)(fd, messages, n, flags, timeout);

		for (int i = 0; i < received; i++)
			if (messages[i].msg_hdr.msg_controllen)
				preload_rights_received(&messages[i].msg_hdr, flags);
		return received;
	}
	HOST_UNLESS_PRIVATE(sfd, fd, recvmmsg, messages, n, flags, timeout);
	return (int)inside_waiting(GUISE_NR_recvmmsg, sfd, (long)messages, n, flags, (long)timeout,
				   0);
}

HOOK int sendmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags)
{
	int sfd = stack_fd(fd);

	if (sfd == ON_HOST && preload.ticket >= 0 &&
	    !guise_readable(messages, n * sizeof(*messages))) {
		int sent;

		for (unsigned int i = 0; i < n; i++)
			preload_rights_sending(&messages[i].msg_hdr);
		sent = HOST(sendmmsg)(fd, messages, n, flags);
		for (unsigned int i = sent < 0 ? 0 : (unsigned int)sent; i < n; i++)
			preload_rights_not_sent(&messages[i].msg_hdr);
		return sent;
	}
	HOST_UNLESS_PRIVATE(sfd, fd, sendmmsg, messages, n, flags);
	return (int)inside_waiting(GUISE_NR_sendmmsg, sfd, (long)messages, n, flags, 0, 0);
}

HOOK off64_t lseek64(int fd, off64_t offset, int whence)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, lseek64, offset, whence);
	return inside(GUISE_NR_lseek, sfd, offset, whence, 0, 0, 0);
}

HOOK off_t lseek(int fd, off_t offset, int whence) SAME_AS(lseek64);

/* ---- with a position ------------------------------------------------------ */

HOOK ssize_t pread64(int fd, void *buf, size_t n, off64_t offset)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, pread64, buf, n, offset);
	return inside(GUISE_NR_pread64, sfd, (long)buf, (long)n, offset, 0, 0);
}

HOOK ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, pwrite64, buf, n, offset);
	return inside(GUISE_NR_pwrite64, sfd, (long)buf, (long)n, offset, 0, 0);
}

HOOK ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t offset)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, preadv64, iov, n, offset);
	return inside(GUISE_NR_preadv, sfd, (long)iov, n, offset, 0, 0);
}

HOOK ssize_t pwritev64(int fd, const struct iovec *iov, int n, off64_t offset)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, pwritev64, iov, n, offset);
	return inside(GUISE_NR_pwritev, sfd, (long)iov, n, offset, 0, 0);
}

/* Offset -1 asks for readv() with flags, which may wait. */
static ssize_t with_flags(long nr, int sfd, const struct iovec *iov, int n, off64_t offset,
			  int flags)
{
	return offset == -1 ? inside_waiting(nr, sfd, (long)iov, n, offset, 0, flags)
			    : inside(nr, sfd, (long)iov, n, offset, 0, flags);
}

HOOK ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, preadv64v2, iov, n, offset, flags);
	return with_flags(GUISE_NR_preadv2, sfd, iov, n, offset, flags);
}

HOOK ssize_t pwritev64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
{
	int sfd = stack_fd(fd);

	HOST_UNLESS_PRIVATE(sfd, fd, pwritev64v2, iov, n, offset, flags);
	return with_flags(GUISE_NR_pwritev2, sfd, iov, n, offset, flags);
}

/* ---- fortified: libc's own call ends a program whose buffer is too small -- */

HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	return n > room ? HOST(__read_chk)(fd, buf, n, room) : read(fd, buf, n);
}

HOOK ssize_t __pread_chk(int fd, void *buf, size_t n, off_t offset, size_t room)
{
	return n > room ? HOST(__pread_chk)(fd, buf, n, offset, room) : pread(fd, buf, n, offset);
}

HOOK ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t offset, size_t room)
{
	return n > room ? HOST(__pread64_chk)(fd, buf, n, offset, room)
			: pread64(fd, buf, n, offset);
}

HOOK ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags)
{
	return n > room ? HOST(__recv_chk)(fd, buf, n, room, flags) : recv(fd, buf, n, flags);
}

HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags,
			    struct sockaddr *addr, socklen_t *len)
{
	return n > room ? HOST(__recvfrom_chk)(fd, buf, n, room, flags, addr, len)
			: recvfrom(fd, buf, n, flags, addr, len);
}

/* ---- libc's other names; off_t has 64 bits -------------------------------- */

_Static_assert(sizeof(off_t) == sizeof(off64_t), "pread and pread64 are one");

HOOK ssize_t pread(int fd, void *buf, size_t n, off_t offset) SAME_AS(pread64);
HOOK ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset) SAME_AS(pwrite64);
HOOK ssize_t preadv(int fd, const struct iovec *iov, int n, off_t offset) SAME_AS(preadv64);
HOOK ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) SAME_AS(pwritev64);
HOOK ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
	SAME_AS(preadv64v2);
HOOK ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
	SAME_AS(pwritev64v2);
HOOK ssize_t __read(int fd, void *buf, size_t n) SAME_AS(read);
HOOK ssize_t __write(int fd, const void *buf, size_t n) SAME_AS(write);
HOOK ssize_t __send(int fd, const void *buf, size_t n, int flags) SAME_AS(send);
HOOK ssize_t __pread64(int fd, void *buf, size_t n, off64_t offset) SAME_AS(pread64);
HOOK ssize_t __pwrite64(int fd, const void *buf, size_t n, off64_t offset) SAME_AS(pwrite64);
