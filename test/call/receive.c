// SPDX-License-Identifier: GPL-2.0-only
/* Receiving: bad buffers, vectors, several messages, urgent data; and when it waits. */
#include "call.h"

#include <stdint.h>

CASE(receive_bad_buffers)
{
	static char buf[16]; /* far from the end of what a program may address */
	char *edge = before_the_edge(4);
	struct sockaddr_in from;
	int fd[2], udp[2];
	socklen_t len;

	stream_pair(fd);
	datagram_pair(udp);
	EACH_BAD_POINTER(p)
	{
		MUST(send(fd[1], "abcd", 4, 0) == 4);
		await(fd[0], POLLIN);
		TELL(recv(fd[0], p->at, 4, MSG_DONTWAIT), "recv(stream, %s)", p->name);
		TELL(read(fd[0], p->at, 4), "read(stream, %s)", p->name);
		TELL(recv(fd[0], p->at, 0, MSG_DONTWAIT), "recv(stream, %s, 0)", p->name);
		TELL(read(fd[0], p->at, 0), "read(stream, %s, 0)", p->name);
		TELL(readv(fd[0], p->at, 1), "readv(stream, %s)", p->name);
		TELL(readv(fd[0], p->at, 0), "readv(stream, %s, 0)", p->name);
		TELL(recvmsg(fd[0], p->at, MSG_DONTWAIT), "recvmsg(stream, %s)", p->name);
		TELL(recvmmsg(fd[0], p->at, 1, MSG_DONTWAIT, NULL), "recvmmsg(stream, %s)",
		     p->name);
		TELL(recv(fd[0], buf, 16, MSG_DONTWAIT), "recv(stream)");
		/* Whether what could not be delivered is gone. */
		MUST(send(udp[1], "abcd", 4, 0) == 4);
		await(udp[0], POLLIN);
		TELL(recv(udp[0], p->at, 4, MSG_DONTWAIT), "recv(datagram, %s)", p->name);
		TELL(recv(udp[0], buf, 16, MSG_DONTWAIT), "recv(datagram)");
		MUST(send(udp[1], "abcd", 4, 0) == 4);
		await(udp[0], POLLIN);
		TELL(read(udp[0], p->at, 4), "read(datagram, %s)", p->name);
		TELL(recv(udp[0], buf, 16, MSG_DONTWAIT), "recv(datagram)");
		MUST(send(udp[1], "abcd", 4, 0) == 4);
		await(udp[0], POLLIN);
		len = sizeof(from);
		TELL(recvfrom(udp[0], buf, 4, MSG_DONTWAIT, p->at, &len), "recvfrom(address %s)",
		     p->name);
		TELL(recvfrom(udp[0], buf, 4, MSG_DONTWAIT, (void *)&from, p->at),
		     "recvfrom(length %s)", p->name);
		TELL(recv(udp[0], buf, 16, MSG_DONTWAIT), "recv(datagram)");
		MUST(send(udp[1], "abcd", 4, 0) == 4);
		await(udp[0], POLLIN);
		TELL(recvmsg(udp[0], p->at, MSG_DONTWAIT), "recvmsg(datagram, %s)", p->name);
		TELL(recvmmsg(udp[0], p->at, 1, MSG_DONTWAIT, NULL), "recvmmsg(%s)", p->name);
		TELL(recvmmsg(udp[0], p->at, 0, MSG_DONTWAIT, NULL), "recvmmsg(%s, 0)", p->name);
		TELL(recv(udp[0], buf, 16, MSG_DONTWAIT), "recv(datagram)");
	}
	for (size_t n = 2; n < 8; n++) {
		MUST(send(fd[1], "abcdefgh", 8, 0) == 8);
		MUST(send(udp[1], "abcdefgh", 8, 0) == 8);
		await(fd[0], POLLIN);
		await(udp[0], POLLIN);
		TELL(recv(udp[0], edge, n, MSG_DONTWAIT), "recv(datagram to the edge, %zu)", n);
		TELL(recv(udp[0], buf, 16, MSG_DONTWAIT), "recv(datagram)");
		TELL(recv(fd[0], edge, n, MSG_DONTWAIT), "recv(stream to the edge, %zu)", n);
		TELL(recv(fd[0], buf, 16, MSG_DONTWAIT), "recv(stream)");
	}
	for (int n = -1; n < 20; n++) {
		MUST(send(udp[1], "ab", 2, 0) == 2);
		await(udp[0], POLLIN);
		len = (socklen_t)n;
		TELL(recvfrom(udp[0], buf, 4, MSG_DONTWAIT, (void *)&from, &len), "recvfrom(%d)",
		     n);
		printf("length %d\n", (int)len);
		while (recv(udp[0], buf, 4, MSG_DONTWAIT) >= 0)
			;
	}
	SHOW(recv(fd[0], buf, (size_t)-1, MSG_DONTWAIT));
	SHOW(read(fd[0], buf, SIZE_MAX / 2 + 1));
	SHOW(recv(-1, buf, 1, 0));
	SHOW(recv(STDIN_FILENO, buf, 1, 0));
	SHOW(recvfrom(-1, buf, 1, 0, NULL, NULL));
	SHOW(recvfrom(STDIN_FILENO, buf, 1, 0, NULL, NULL));
	SHOW(recvmsg(-1, NULL, 0));
	SHOW(recvmsg(STDIN_FILENO, NULL, 0));
	SHOW(recvmmsg(-1, NULL, 0, 0, NULL));
	SHOW(recvmmsg(STDIN_FILENO, NULL, 0, 0, NULL));
	SHOW(read(-1, buf, 1));
	SHOW(readv(-1, NULL, 1));
	SHOW(recv(socket(AF_INET, SOCK_STREAM, 0), buf, 1, 0));
	SHOW(read(socket(AF_INET, SOCK_STREAM, 0), buf, 1));
	SHOW(recv(socket(AF_INET, SOCK_DGRAM, 0), buf, 1, MSG_DONTWAIT));
	SHOW(recv(socket(AF_INET, SOCK_RAW, 1), buf, 1, MSG_DONTWAIT));
	SHOW(recv(socket(AF_PACKET, SOCK_RAW, 0), buf, 1, MSG_DONTWAIT));
	SHOW(recv(socket(AF_NETLINK, SOCK_RAW, 0), buf, 1, MSG_DONTWAIT));
}

CASE(receive_vectors)
{
	char a[4], b[4], c[8];
	struct iovec iov[3] = { { a, 2 }, { b, 0 }, { c, 3 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 3 };
	int fd[2], udp[2];

	stream_pair(fd);
	datagram_pair(udp);
	MUST(send(fd[1], "abcdefghijklmnop", 16, 0) == 16);
	await(fd[0], POLLIN);
	MUST(!fcntl(fd[0], F_SETFL, O_NONBLOCK));
	SHOW(readv(fd[0], iov, 3));
	SHOW(memcmp(c, "cde", 3));
	SHOW(readv(fd[0], iov, -1));
	SHOW(readv(fd[0], iov, 1025));
	SHOW(preadv(fd[0], iov, 3, 0));
	SHOW(preadv(fd[0], iov, 3, -1));
	SHOW(preadv2(fd[0], iov, 3, -1, 0));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x8 /* NOWAIT */));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x1 /* HIPRI */));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x2 /* DSYNC */));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x10 /* APPEND */));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x20 /* NOAPPEND */));
	SHOW(preadv2(fd[0], iov, 3, -1, 0x4000));
	SHOW(preadv2(fd[0], iov, 3, 0, 0));
	SHOW(preadv2(fd[0], iov, 3, -2, 0));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x8));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x1));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x2));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x4));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x10));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x20));
	SHOW(pwritev2(fd[0], iov, 3, -1, 0x4000));
	SHOW(pwritev2(fd[0], iov, 3, 0, 0));
	SHOW(pwritev2(fd[0], iov, 3, -2, 0));
	SHOW(pread(fd[0], a, 1, 0));
	SHOW(pread(fd[0], a, 1, -1));
	SHOW(pwrite(fd[0], a, 1, 0));
	SHOW(pwrite(fd[0], a, 1, -1));
	SHOW(pread64(fd[0], NULL, 1, 0));
	SHOW(pwrite64(fd[0], NULL, 1, 0));
	SHOW(preadv(fd[0], NULL, 1, 0));
	SHOW(pwritev(fd[0], NULL, 1, 0));
	SHOW(preadv64(-1, NULL, 1, 0));
	SHOW(pwritev64(-1, NULL, 1, 0));
	SHOW(preadv64v2(-1, NULL, 1, 0, 0));
	SHOW(pwritev64v2(-1, NULL, 1, 0, 0));
	SHOW(lseek(fd[0], 0, SEEK_CUR));
	EACH_BAD_POINTER(p)
	{
		MUST(send(udp[1], "abcdefgh", 8, 0) == 8);
		await(udp[0], POLLIN);
		iov[2].iov_base = p->at;
		TELL(recvmsg(udp[0], &m, MSG_DONTWAIT), "recvmsg(base %s)", p->name);
		TELL(recv(udp[0], a, 1, MSG_DONTWAIT), "recv(rest)");
		TELL(preadv2(fd[0], iov, 3, -1, 0), "preadv2(base %s)", p->name);
		iov[2].iov_base = c;
		MUST(send(udp[1], "abcdefgh", 8, 0) == 8);
		await(udp[0], POLLIN);
		m.msg_name = p->at;
		m.msg_namelen = 16;
		TELL(recvmsg(udp[0], &m, MSG_DONTWAIT), "recvmsg(name %s)", p->name);
		m.msg_name = NULL;
		m.msg_control = p->at;
		m.msg_controllen = 64;
		TELL(recvmsg(udp[0], &m, MSG_DONTWAIT), "recvmsg(control %s)", p->name);
		m.msg_control = NULL;
		m.msg_controllen = 0;
		TELL(recv(udp[0], a, 1, MSG_DONTWAIT), "recv(rest)");
		TELL(preadv2(fd[0], p->at, 1, -1, 0), "preadv2(%s)", p->name);
		TELL(pwritev2(fd[0], p->at, 1, -1, 0), "pwritev2(%s)", p->name);
	}
}

static long receive_all(struct attempt *a)
{
	char buf[8];

	return recv(a->fd, buf, 8, MSG_WAITALL);
}

static long receive_some(struct attempt *a)
{
	char buf[8];

	return recv(a->fd, buf, 8, a->data ? MSG_PEEK : 0);
}

CASE(receive_waits)
{
	struct timeval soon = { .tv_usec = 30000 };
	struct attempt a = { .call = receive_all };
	int fd[2], low = 4;
	char buf[8];

	stream_pair(fd);
	a.fd = fd[0];
	MUST(send(fd[1], "abc", 3, 0) == 3);
	WAITS(&a, "recv(WAITALL)", send(fd[1], "defgh", 5, 0));
	MUST(send(fd[1], "abc", 3, 0) == 3);
	WAITS(&a, "recv(WAITALL, then end)", shutdown(fd[1], SHUT_WR));
	WAITS(&a, "recv(after the end)", close(fd[1]));
	close(fd[0]);
	stream_pair(fd);
	a.fd = fd[0];
	a.call = receive_some;
	WAITS(&a, "recv(some)", send(fd[1], "x", 1, 0));
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_RCVLOWAT, &low, 4));
	MUST(send(fd[1], "abc", 3, 0) == 3);
	WAITS(&a, "recv(low water)", send(fd[1], "defg", 4, 0));
	a.data = buf;
	WAITS(&a, "recv(peek)", send(fd[1], "abcd", 4, 0));
	WAITS(&a, "recv(peek again)", send(fd[1], "abcd", 4, 0));
	a.data = NULL;
	WAITS(&a, "recv(what was looked at)", (void)0);
	WAITS(&a, "recv(shut by myself)", shutdown(fd[0], SHUT_RD));
	SHOW(send(fd[1], "late", 4, 0));
	SHOW(setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	SHOW(recv(fd[1], buf, 1, 0));
	SHOW(read(fd[1], buf, 1));
	SHOW(recv(fd[1], buf, 8, MSG_WAITALL));
	datagram_pair(fd);
	a.fd = fd[0];
	WAITS(&a, "recv(datagram)", send(fd[1], "x", 1, 0));
	WAITS(&a, "recv(empty datagram)", send(fd[1], "", 0, 0));
	WAITS(&a, "recv(datagram, shut)", shutdown(fd[0], SHUT_RD));
	SHOW(setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	SHOW(recv(fd[1], buf, 1, 0));
	close(fd[0]);
	a.fd = fd[1];
	MUST(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0 }, sizeof(soon)));
	WAITS(&a, "recv(nobody there)", send(fd[1], "x", 1, 0));
}

static long accept_one(struct attempt *a)
{
	return accept(a->fd, NULL, NULL) < 0 ? -1 : 0;
}

CASE(accept_waits)
{
	struct timeval soon = { .tv_usec = 30000 };
	struct attempt a = { .call = accept_one };
	struct sockaddr_in addr;

	a.fd = bound(SOCK_STREAM, &addr);
	WAITS(&a, "accept()",
	      connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&addr, sizeof(addr)));
	WAITS(&a, "accept(shut)", shutdown(a.fd, SHUT_RD));
	a.fd = bound(SOCK_STREAM, &addr);
	SHOW(setsockopt(a.fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	SHOW(accept(a.fd, NULL, NULL));
	SHOW(fcntl(a.fd, F_SETFL, O_NONBLOCK));
	WAITS(&a, "accept(without waiting)", (void)0);
}

static long receive_several(struct attempt *a)
{
	static char data[4][8];
	struct iovec iov[4];
	struct mmsghdr m[4] = { 0 };
	long ret;

	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ data[i], 8 };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	ret = recvmmsg(a->fd, m, 4, a->data ? MSG_WAITFORONE : 0, NULL);
	for (int i = 0; i < ret; i++)
		printf("message of %u\n", m[i].msg_len);
	return ret;
}

CASE(receive_several_messages)
{
	static const struct timespec times[] = { { 0, 0 },          { 0, 1 },  { 0, 20000000 },
						 { 0, 1000000000 }, { 0, -1 }, { -1, 0 } };
	struct attempt a = { .call = receive_several };
	struct iovec iov[4];
	struct mmsghdr m[4] = { 0 };
	char data[4][8];
	int udp[2];

	datagram_pair(udp);
	a.fd = udp[0];
	WAITS(&a, "recvmmsg(4)", {
		for (int i = 0; i < 4; i++)
			send(udp[1], "abcd", (size_t)i + 1, 0);
	});
	a.data = data;
	WAITS(&a, "recvmmsg(4, one will do)", send(udp[1], "a", 1, 0));
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ data[i], 8 };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	for (size_t i = 0; i < COUNT(times); i++) {
		struct timespec t = times[i];

		for (int k = 0; k < 2; k++)
			MUST(send(udp[1], "ab", 2, 0) == 2);
		await(udp[0], POLLIN);
		TELL(recvmmsg(udp[0], m, 4, MSG_DONTWAIT, &t), "recvmmsg(time %ld %ld)",
		     (long)times[i].tv_sec, times[i].tv_nsec);
		while (recv(udp[0], data, 8, MSG_DONTWAIT) >= 0)
			;
	}
	EACH_BAD_POINTER(p)
	{
		MUST(send(udp[1], "ab", 2, 0) == 2);
		await(udp[0], POLLIN);
		if (p->at)
			TELL(recvmmsg(udp[0], m, 1, MSG_DONTWAIT, p->at), "recvmmsg(timeout %s)",
			     p->name);
		TELL(recv(udp[0], data, 8, MSG_DONTWAIT), "recv(rest)");
	}
	/* The second has nowhere to go. */
	MUST(send(udp[1], "ab", 2, 0) == 2);
	MUST(send(udp[1], "cd", 2, 0) == 2);
	await(udp[0], POLLIN);
	iov[1].iov_base = (void *)8;
	SHOW(recvmmsg(udp[0], m, 2, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(udp[0], m, 2, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(udp[0], m, 0, MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(udp[0], m, 2, MSG_OOB | MSG_DONTWAIT, NULL));
	SHOW(recvmmsg(udp[0], m, 2, MSG_ERRQUEUE, NULL));
	SHOW(recvmmsg(udp[0], m, 2, MSG_DONTWAIT | 0x80000000, NULL));
}

/* Urgent data. */
CASE(receive_out_of_band)
{
	int fd[2], one = 1, mark = -1;
	char buf[8];

	for (int inline_ = 0; inline_ < 2; inline_++) {
		stream_pair(fd);
		SHOW(sockatmark(fd[0]));
		SHOW(recv(fd[0], buf, 1, MSG_OOB));
		if (inline_)
			SHOW(setsockopt(fd[0], SOL_SOCKET, SO_OOBINLINE, &one, 4));
		MUST(send(fd[1], "ab", 2, 0) == 2);
		MUST(send(fd[1], "!", 1, MSG_OOB) == 1);
		MUST(send(fd[1], "cd", 2, 0) == 2);
		await(fd[0], POLLPRI);
		SHOW(sockatmark(fd[0]));
		SHOW(recv(fd[0], buf, 8, MSG_OOB | MSG_PEEK));
		SHOW(recv(fd[0], buf, 8, 0));
		SHOW(sockatmark(fd[0]));
		SHOW(recv(fd[0], buf, 8, MSG_OOB));
		SHOW(recv(fd[0], buf, 8, MSG_OOB));
		SHOW(recv(fd[0], buf, 8, MSG_DONTWAIT));
		SHOW(recv(fd[0], buf, 8, MSG_DONTWAIT));
		SHOW(mark);
		close(fd[0]);
		close(fd[1]);
	}
	SHOW(sockatmark(-1));
	SHOW(sockatmark(STDIN_FILENO));
	SHOW(sockatmark(socket(AF_INET, SOCK_DGRAM, 0)));
	SHOW(sockatmark(socket(AF_INET, SOCK_STREAM, 0)));
	SHOW(sockatmark(socket(AF_INET, SOCK_RAW, 1)));
}
