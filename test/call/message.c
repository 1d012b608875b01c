// SPDX-License-Identifier: GPL-2.0-only
/* What comes with a message: its flags, its control data, and the queue of errors. */
#include "call.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/ip6.h>

/* One message, with all that comes with it. */
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

/* All control messages that a datagram can have. */
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

	/* A closed port: an error by ICMP. */
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
	/* A packet that cannot be sent: an error of this host itself. */
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
