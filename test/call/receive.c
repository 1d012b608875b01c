// SPDX-License-Identifier: GPL-2.0-only
/* Receiving: flags, control data, the queue of errors, bad buffers, and when it waits. */
#include "call.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>

#define ALL_FLAGS 21

/* One message, and all that is said with it. */
static void receive(int fd, int flags, const char *what)
{
	union {
		char bytes[1024];
		struct cmsghdr header;
	} control;
	struct sockaddr_storage from;
	char data[64] = { 0 };
	struct iovec iov = { data, sizeof(data) - 1 };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control),
			    .msg_flags = -1 };

	if (TELL(recvmsg(fd, &m, flags), "recvmsg(%s)", what) < 0)
		return;
	printf("data %s, name of %u, flags %x, control of %zu\n", data, m.msg_namelen,
	       (unsigned int)m.msg_flags, m.msg_controllen);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t n = c->cmsg_len - CMSG_LEN(0);

		printf("control %d, %d, %zu:", c->cmsg_level, c->cmsg_type, n);
		/* Times are not equal. */
		if (c->cmsg_level == SOL_SOCKET) {
			printf(" something\n");
			continue;
		}
		/* Ports that the kernel chose: those of a socket address. */
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			memset(CMSG_DATA(c) + 2, 0, 2);
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == 74)
			memset(CMSG_DATA(c) + 2, 0, 2);
		for (size_t i = 0; i < n; i++)
			printf("%s%02x", i % 4 ? "" : " ", CMSG_DATA(c)[i]);
		printf("\n");
	}
}

CASE(receive_flags)
{
	int fd[2], udp[2];
	char buf[16];

	for (int i = -1; i < 31; i++) {
		int flag = i < 0 ? 0 : 1 << i;

		stream_pair(fd);
		datagram_pair(udp);
		MUST(send(fd[1], "abcdef", 6, 0) == 6);
		MUST(send(udp[1], "abcdef", 6, 0) == 6);
		await(fd[0], POLLIN);
		await(udp[0], POLLIN);
		TELL(recv(fd[0], buf, 4, flag), "recv(stream, %x)", flag);
		TELL(recv(fd[0], buf, 0, flag), "recv(stream, nothing, %x)", flag);
		TELL(recv(fd[0], buf, 4, flag | MSG_DONTWAIT), "recv(stream, %x again)", flag);
		TELL(recv(fd[0], buf, 4, flag | MSG_DONTWAIT), "recv(stream, %x again)", flag);
		TELL(recv(fd[0], NULL, 4, flag | MSG_DONTWAIT), "recv(stream, %x to nowhere)",
		     flag);
		TELL(recv(udp[0], buf, 4, flag), "recv(datagram, %x)", flag);
		TELL(recv(udp[0], buf, 4, flag | MSG_DONTWAIT), "recv(datagram, %x again)", flag);
		TELL(recv(udp[0], buf, 0, flag | MSG_DONTWAIT), "recv(datagram, %x nothing)", flag);
		MUST(send(udp[1], "abcdef", 6, 0) == 6);
		MUST(send(udp[1], "", 0, 0) == 0);
		await(udp[0], POLLIN);
		receive(udp[0], flag | MSG_DONTWAIT, "datagram");
		receive(udp[0], flag | MSG_DONTWAIT, "datagram");
		receive(udp[0], flag | MSG_DONTWAIT, "datagram");
		MUST(send(fd[1], "abcdef", 6, 0) == 6);
		await(fd[0], POLLIN);
		receive(fd[0], flag | MSG_DONTWAIT, "stream");
		for (int k = 0; k < 2; k++) {
			close(fd[k]);
			close(udp[k]);
		}
	}
}

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

/* The kernel begins to take the time of packets a moment after it was asked to. */
static void await_times(void)
{
	int one = 1, udp[2];
	char data[8], room[256];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room };

	datagram_pair(udp); /* stays open: it keeps them so */
	MUST(!setsockopt(udp[0], SOL_SOCKET, SO_TIMESTAMPING,
			 (int[]){ SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE }, 4));
	MUST(!setsockopt(udp[0], SOL_SOCKET, SO_RXQ_OVFL, &one, 4));
	for (int i = 0; i < 2000; i++) {
		struct timespec moment = { .tv_nsec = 5000000 };

		m.msg_controllen = sizeof(room);
		MUST(send(udp[1], "t", 1, 0) == 1);
		await(udp[0], POLLIN);
		MUST(recvmsg(udp[0], &m, 0) == 1);
		if (CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SO_TIMESTAMPING)
			return;
		nanosleep(&moment, NULL);
	}
	MUST(!"packets never got a time");
}

/* Whatever can be told with a datagram. */
CASE(receive_control)
{
	static const int v4[] = { IP_PKTINFO,         IP_RECVTTL, IP_RECVTOS,
				  IP_RECVOPTS,        IP_RETOPTS, IP_PASSSEC,
				  IP_RECVORIGDSTADDR, 23,         25 };
	static const int v6[] = { 49, 51, 53, 54, 56, 58, 66, 74, 77, 2, 3, 4, 5, 6, 8 };
	static const int s[] = {
		SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING, SO_RXQ_OVFL, SO_PASSCRED, 63, 64,
		65,           SO_RCVMARK
	};
	int one = 1, udp[2], a, b;
	struct sockaddr_in6 to = loopback6(0);
	socklen_t len = sizeof(to);

	for (size_t i = 0; i < COUNT(v4); i++) {
		datagram_pair(udp);
		TELL(setsockopt(udp[0], IPPROTO_IP, v4[i], &one, 4), "setsockopt(IP, %d)", v4[i]);
		MUST(send(udp[1], "v4", 2, 0) == 2);
		await(udp[0], POLLIN);
		receive(udp[0], 0, "v4");
		close(udp[0]);
		close(udp[1]);
	}
	for (size_t i = 0; i < COUNT(v6); i++) {
		a = socket(AF_INET6, SOCK_DGRAM, 0);
		b = socket(AF_INET6, SOCK_DGRAM, 0);
		to = loopback6(0);
		MUST(!bind(a, (void *)&to, len));
		MUST(!getsockname(a, (void *)&to, &len));
		TELL(setsockopt(a, IPPROTO_IPV6, v6[i], &one, 4), "setsockopt(IPV6, %d)", v6[i]);
		MUST(sendto(b, "v6", 2, 0, (void *)&to, len) == 2);
		await(a, POLLIN);
		receive(a, 0, "v6");
		close(a);
		close(b);
	}
	await_times();
	for (size_t i = 0; i < COUNT(s); i++) {
		datagram_pair(udp);
		if (s[i] == SO_TIMESTAMPING || s[i] == 65)
			one = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
		TELL(setsockopt(udp[0], SOL_SOCKET, s[i], &one, 4) < 0, "option %d", s[i]);
		one = 1;
		MUST(send(udp[1], "s", 1, 0) == 1);
		await(udp[0], POLLIN);
		receive(udp[0], 0, "socket");
		close(udp[0]);
		close(udp[1]);
	}
}

/* All of them at once, with less and less room. */
CASE(receive_control_room)
{
	union {
		char bytes[256];
		struct cmsghdr header;
	} control;
	int one = 1, udp[2];
	char data[16];

	datagram_pair(udp);
	MUST(!setsockopt(udp[0], IPPROTO_IP, IP_PKTINFO, &one, 4));
	MUST(!setsockopt(udp[0], IPPROTO_IP, IP_RECVTTL, &one, 4));
	MUST(!setsockopt(udp[0], IPPROTO_IP, IP_RECVTOS, &one, 4));
	for (size_t room = 0; room < 120; room += 3) {
		struct iovec iov = { data, sizeof(data) };
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = room };

		memset(&control, 0xa5, sizeof(control));
		MUST(send(udp[1], "abc", 3, 0) == 3);
		await(udp[0], POLLIN);
		TELL(recvmsg(udp[0], &m, 0), "recvmsg(room for %zu)", room);
		printf("flags %x, control of %zu:", (unsigned int)m.msg_flags, m.msg_controllen);
		for (size_t i = 0; i < 120; i++)
			printf("%02x", (unsigned char)control.bytes[i]);
		printf("\n");
	}
}

CASE(receive_errors)
{
	int udp[2], fd[2], one = 1, stamps;
	struct sockaddr_in6 none = loopback6(9);
	struct sockaddr_in none4 = loopback(9), far = loopback(9);
	int u;

	/* Nobody at a port: a report of ICMP. */
	u = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(u, IPPROTO_IP, IP_RECVERR, &one, 4));
	SHOW(recvmsg(u, &(struct msghdr){ 0 }, MSG_ERRQUEUE));
	SHOW(sendto(u, "abc", 3, 0, (void *)&none4, sizeof(none4)));
	await(u, POLLERR);
	receive(u, MSG_ERRQUEUE, "error");
	receive(u, MSG_ERRQUEUE, "error");
	receive(u, MSG_DONTWAIT, "after it");
	SHOW(sendto(u, "abc", 3, 0, (void *)&none4, sizeof(none4)));
	await(u, POLLERR);
	receive(u, MSG_DONTWAIT, "before it");
	receive(u, MSG_ERRQUEUE | MSG_PEEK, "error");
	receive(u, MSG_ERRQUEUE, "error");
	/* None on the way: a report of this host's own. */
	far.sin_addr.s_addr = htonl(0xc0000201);
	SHOW(sendto(u, "abc", 3, 0, (void *)&far, sizeof(far)));
	receive(u, MSG_ERRQUEUE, "local");
	SHOW(connect(u, (void *)&none4, sizeof(none4)));
	SHOW(setsockopt(u, IPPROTO_IP, IP_MTU_DISCOVER, (int[]){ IP_PMTUDISC_DO }, 4));
	{
		static char big[65000];

		SHOW(send(u, big, 65507, 0));
		receive(u, MSG_ERRQUEUE, "too big");
	}
	u = socket(AF_INET6, SOCK_DGRAM, 0);
	MUST(!setsockopt(u, IPPROTO_IPV6, 25 /* RECVERR */, &one, 4));
	SHOW(sendto(u, "abc", 3, 0, (void *)&none, sizeof(none)));
	await(u, POLLERR);
	receive(u, MSG_ERRQUEUE, "error");
	receive(u, MSG_ERRQUEUE, "error");
	/* Times of what was sent. */
	datagram_pair(udp);
	stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
		 SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_TX_SCHED;
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_TIMESTAMPING, &stamps, 4));
	SHOW(send(udp[0], "stamp", 5, 0));
	await(udp[0], POLLERR);
	receive(udp[0], MSG_ERRQUEUE, "stamp");
	stream_pair(fd);
	stamps |= SOF_TIMESTAMPING_TX_ACK;
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_TIMESTAMPING, &stamps, 4));
	SHOW(send(fd[0], "stamp", 5, 0));
	await(fd[1], POLLIN);
	await(fd[0], POLLERR);
	receive(fd[0], MSG_ERRQUEUE, "stamp of a stream");
	receive(fd[0], MSG_ERRQUEUE | MSG_TRUNC, "stamp of a stream");
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

/* The byte that overtakes. */
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
