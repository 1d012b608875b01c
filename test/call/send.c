// SPDX-License-Identifier: GPL-2.0-only
/* Sending: flags, messages, control data, bad buffers. */
#include "call.h"

#include <limits.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <signal.h>

static const struct {
	const char *name;
	int flag;
} flags[] = {
	{ "0", 0 },
	{ "OOB", MSG_OOB },
	{ "PEEK", MSG_PEEK },
	{ "DONTROUTE", MSG_DONTROUTE },
	{ "CTRUNC", MSG_CTRUNC },
	{ "PROBE", 0x10 },
	{ "TRUNC", MSG_TRUNC },
	{ "DONTWAIT", MSG_DONTWAIT },
	{ "EOR", MSG_EOR },
	{ "WAITALL", MSG_WAITALL },
	{ "FIN", 0x200 },
	{ "SYN", 0x400 },
	{ "CONFIRM", MSG_CONFIRM },
	{ "RST", 0x1000 },
	{ "ERRQUEUE", MSG_ERRQUEUE },
	{ "NOSIGNAL", MSG_NOSIGNAL },
	{ "MORE", MSG_MORE },
	{ "WAITFORONE", MSG_WAITFORONE },
	{ "BATCH", 0x40000 },
	{ "FASTOPEN", MSG_FASTOPEN },
	{ "CMSG_CLOEXEC", MSG_CMSG_CLOEXEC },
};

static volatile sig_atomic_t pipes_broken;

static void count_pipe(int sig)
{
	(void)sig;
	pipes_broken++;
}

CASE(send_flags)
{
	struct sockaddr_in to;
	int fd[2], u = bound(SOCK_DGRAM, &to), none = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[64];

	signal(SIGPIPE, count_pipe);
	for (size_t i = 0; i < COUNT(flags); i++) {
		stream_pair(fd);
		TELL(send(fd[0], "abc", 3, flags[i].flag), "send(stream, %s)", flags[i].name);
		TELL(send(fd[0], "de", 2, 0), "send(stream)");
		if (flags[i].flag != MSG_PEEK)
			shutdown(fd[0], SHUT_WR);
		TELL(recv(fd[1], buf, 5, MSG_WAITALL), "recv(stream)");
		close(fd[1]);
		TELL(send(fd[0], "x", 1, flags[i].flag), "send(shut, %s)", flags[i].name);
		close(fd[0]);
		datagram_pair(fd);
		TELL(send(fd[0], "abc", 3, flags[i].flag), "send(datagram, %s)", flags[i].name);
		TELL(send(fd[0], "de", 2, 0), "send(datagram)");
		TELL(recv(fd[1], buf, 5, MSG_DONTWAIT), "recv(datagram)");
		TELL(recv(fd[1], buf, 5, MSG_DONTWAIT), "recv(datagram)");
		close(fd[0]);
		close(fd[1]);
		TELL(sendto(none, "abc", 3, flags[i].flag, (void *)&to, sizeof(to)), "sendto(%s)",
		     flags[i].name);
		TELL(recv(u, buf, 9, MSG_DONTWAIT), "recv(sendto)");
		TELL(send(socket(AF_INET, SOCK_STREAM, 0), "x", 1, flags[i].flag),
		     "send(unconnected stream, %s)", flags[i].name);
		TELL(send(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, flags[i].flag),
		     "send(unconnected datagram, %s)", flags[i].name);
	}
	printf("%d times SIGPIPE\n", pipes_broken);
}

CASE(send_bad_buffers)
{
	struct sockaddr_in to;
	int fd[2], udp[2], u = bound(SOCK_DGRAM, &to);
	char *edge = before_the_edge(10), buf[64];
	static char big[70000];

	stream_pair(fd);
	datagram_pair(udp);
	EACH_BAD_POINTER(p)
	{
		TELL(send(fd[0], p->at, 4, 0), "send(stream, %s)", p->name);
		TELL(send(fd[0], p->at, 0, 0), "send(stream, %s, 0)", p->name);
		TELL(send(udp[0], p->at, 4, 0), "send(datagram, %s)", p->name);
		TELL(send(udp[0], p->at, 0, 0), "send(datagram, %s, 0)", p->name);
		TELL(write(fd[0], p->at, 4), "write(stream, %s)", p->name);
		TELL(write(fd[0], p->at, 0), "write(stream, %s, 0)", p->name);
		TELL(sendto(u, "abc", 3, 0, p->at, 16), "sendto(address %s)", p->name);
		TELL(sendto(u, "abc", 3, 0, p->at, 0), "sendto(address %s, 0)", p->name);
		TELL(sendmsg(u, p->at, 0), "sendmsg(%s)", p->name);
		TELL(sendmmsg(u, p->at, 1, 0), "sendmmsg(%s)", p->name);
		TELL(sendmmsg(u, p->at, 0, 0), "sendmmsg(%s, 0)", p->name);
		TELL(writev(fd[0], p->at, 1), "writev(%s)", p->name);
		TELL(writev(fd[0], p->at, 0), "writev(%s, 0)", p->name);
	}
	for (size_t n = 8; n < 14; n++) {
		TELL(send(udp[0], edge, n, 0), "send(datagram at the edge, %zu)", n);
		TELL(send(fd[0], edge, n, 0), "send(stream at the edge, %zu)", n);
	}
	SHOW(recv(fd[1], big, sizeof(big), 0) >= 0);
	while (recv(udp[1], buf, sizeof(buf), MSG_DONTWAIT) >= 0)
		;
	/* How much a datagram may be. */
	SHOW(send(udp[0], big, 65507, 0));
	SHOW(send(udp[0], big, 65508, 0));
	SHOW(send(udp[0], big, 65536, 0));
	SHOW(send(udp[0], big, (size_t)-1, 0));
	SHOW(write(udp[0], big, (size_t)-1));
	SHOW(write(fd[0], big, SIZE_MAX / 2 + 1));
	for (socklen_t len = 0; len < 20; len++)
		TELL(sendto(u, "abc", 3, 0, (void *)&to, len), "sendto(length %u)", len);
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, (socklen_t)-1));
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 4711));
	to.sin_port = 0;
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 16));
	to.sin_family = AF_INET6;
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 16));
	to.sin_family = AF_UNSPEC;
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 16));
	to.sin_family = AF_INET;
	to.sin_port = htons(9);
	to.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 16));
	to.sin_addr.s_addr = htonl(0xc0000201);
	SHOW(sendto(u, "abc", 3, 0, (void *)&to, 16));
	SHOW(sendto(fd[0], "abc", 3, 0, (void *)&to, 16));
	SHOW(sendto(-1, "abc", 3, 0, (void *)&to, 16));
	SHOW(sendto(STDIN_FILENO, "abc", 3, 0, (void *)&to, 16));
	SHOW(send(-1, "abc", 3, 0));
	SHOW(send(STDIN_FILENO, "abc", 3, 0));
	SHOW(sendmsg(-1, NULL, 0));
	SHOW(sendmsg(STDIN_FILENO, NULL, 0));
	SHOW(sendmmsg(-1, NULL, 0, 0));
	SHOW(sendmmsg(STDIN_FILENO, NULL, 0, 0));
	SHOW(write(-1, "x", 1));
	SHOW(writev(-1, NULL, 0));
}

CASE(send_vectors)
{
	struct iovec iov[4] = { { "ab", 2 }, { "", 0 }, { "cde", 3 }, { "f", 1 } };
	struct iovec many[UIO_MAXIOV + 1];
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 4 };
	int fd[2], udp[2];
	char buf[2048];

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (struct iovec){ "x", 1 };
	stream_pair(fd);
	datagram_pair(udp);
	SHOW(writev(fd[0], iov, 4));
	SHOW(writev(udp[0], iov, 4));
	SHOW(recv(udp[1], buf, sizeof(buf), 0));
	SHOW(writev(fd[0], iov, -1));
	SHOW(writev(fd[0], many, UIO_MAXIOV));
	SHOW(writev(fd[0], many, UIO_MAXIOV + 1));
	SHOW(writev(fd[0], many, INT_MAX));
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_iov = many;
	m.msg_iovlen = UIO_MAXIOV;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_iovlen = UIO_MAXIOV + 1;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_iovlen = (size_t)-1;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_iov = iov;
	m.msg_iovlen = 4;
	iov[2].iov_len = (size_t)-1;
	SHOW(writev(fd[0], iov, 4));
	SHOW(sendmsg(udp[0], &m, 0));
	iov[2].iov_len = 3;
	EACH_BAD_POINTER(p)
	{
		iov[2].iov_base = p->at;
		TELL(writev(fd[0], iov, 4), "writev(base %s)", p->name);
		TELL(writev(udp[0], iov, 4), "writev(datagram, base %s)", p->name);
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(base %s)", p->name);
		TELL(sendmsg(fd[0], &m, 0), "sendmsg(stream, base %s)", p->name);
	}
	iov[2].iov_base = "cde";
	EACH_BAD_POINTER(p)
	{
		m.msg_iov = p->at;
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(vector %s)", p->name);
		m.msg_iov = iov;
		m.msg_name = p->at;
		m.msg_namelen = 16;
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(name %s)", p->name);
		m.msg_namelen = 0;
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(name %s, 0)", p->name);
		m.msg_name = NULL;
		m.msg_control = p->at;
		m.msg_controllen = 32;
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(control %s)", p->name);
		m.msg_controllen = 0;
		TELL(sendmsg(udp[0], &m, 0), "sendmsg(control %s, 0)", p->name);
		m.msg_control = NULL;
	}
	m.msg_namelen = (socklen_t)-1;
	m.msg_name = buf;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_namelen = 4711;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_name = NULL;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_namelen = 0;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_control = buf;
	m.msg_controllen = (size_t)INT_MAX + 1;
	SHOW(sendmsg(udp[0], &m, 0));
	m.msg_controllen = 10000000;
	SHOW(sendmsg(udp[0], &m, 0));
}

static void with_control(int fd, struct sockaddr *to, socklen_t tolen, int level, int type,
			 const void *data, size_t n)
{
	union {
		char bytes[512];
		struct cmsghdr header;
	} control = { { 0 } };
	struct iovec iov = { "abc", 3 };
	struct msghdr m = { .msg_name = to,
			    .msg_namelen = tolen,
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_SPACE(n) };

	control.header.cmsg_level = level;
	control.header.cmsg_type = type;
	control.header.cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(&control.header), data, n);
	TELL(sendmsg(fd, &m, 0), "sendmsg(control %d, %d, %zu)", level, type, n);
}

/* Every type of control data, with every length that one may have. */
CASE(send_control)
{
	static const int levels[] = { SOL_SOCKET,  IPPROTO_IP,  IPPROTO_IPV6,
				      IPPROTO_UDP, IPPROTO_TCP, 4711 };
	static const size_t sizes[] = { 0, 1, 2, 4, 8, 12, 16, 20, 24 };
	struct sockaddr_in to;
	struct sockaddr_in6 to6 = loopback6(0);
	socklen_t len6 = sizeof(to6);
	int u = bound(SOCK_DGRAM, &to), u6 = socket(AF_INET6, SOCK_DGRAM, 0);
	int fd[2];
	char data[64] = { 0 };

	stream_pair(fd);
	MUST(!bind(u6, (void *)&to6, len6));
	MUST(!getsockname(u6, (void *)&to6, &len6));
	for (size_t l = 0; l < COUNT(levels); l++)
		for (int type = 0; type < 80; type++)
			for (size_t s = 0; s < COUNT(sizes); s++) {
				/* Descriptors and credentials: of the host's families. */
				if (levels[l] == IPPROTO_UDP && type > 5 && s)
					continue;
				with_control(u, (void *)&to, sizeof(to), levels[l], type, data,
					     sizes[s]);
				if (levels[l] != IPPROTO_IP)
					with_control(u6, (void *)&to6, sizeof(to6), levels[l], type,
						     data, sizes[s]);
				if (sizes[s] == 4)
					with_control(fd[0], NULL, 0, levels[l], type, data, 4);
			}
	memset(data, 1, sizeof(data));
	for (int type = 0; type < 20; type++)
		with_control(u, (void *)&to, sizeof(to), IPPROTO_IP, type, data, 4);
	for (int type = 40; type < 80; type++)
		with_control(u6, (void *)&to6, sizeof(to6), IPPROTO_IPV6, type, data, 4);
	with_control(u, (void *)&to, sizeof(to), IPPROTO_UDP, 103, "\1\0", 2);
	with_control(u, (void *)&to, sizeof(to), IPPROTO_UDP, 103, "\0\0", 2);
	with_control(u, (void *)&to, sizeof(to), IPPROTO_UDP, 103, "\377\377", 2);
}

/* Headers of control data that lie about their lengths. */
CASE(send_control_lengths)
{
	struct sockaddr_in to;
	int u = bound(SOCK_DGRAM, &to), fd[2];

	stream_pair(fd);
	for (size_t len = 0; len < 40; len++)
		for (size_t room = 0; room < 40; room += 4) {
			union {
				char bytes[64];
				struct cmsghdr header;
			} control = { { 0 } };
			struct iovec iov = { "abc", 3 };
			struct msghdr m = { .msg_name = &to,
					    .msg_namelen = sizeof(to),
					    .msg_iov = &iov,
					    .msg_iovlen = 1,
					    .msg_control = &control,
					    .msg_controllen = room };

			control.header.cmsg_level = IPPROTO_IP;
			control.header.cmsg_type = IP_TTL;
			control.header.cmsg_len = len;
			control.bytes[16] = 9;
			TELL(sendmsg(u, &m, 0), "sendmsg(header says %zu, room %zu)", len, room);
			m.msg_name = NULL;
			TELL(sendmsg(fd[0], &m, 0), "sendmsg(stream, %zu, %zu)", len, room);
		}
}

CASE(send_several)
{
	struct iovec iov[3] = { { "a", 1 }, { "bc", 2 }, { (void *)8, 3 } };
	struct mmsghdr m[3] = { 0 };
	int fd[2], udp[2];
	char buf[16];

	stream_pair(fd);
	datagram_pair(udp);
	for (int i = 0; i < 3; i++) {
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
		m[i].msg_len = 77;
	}
	for (unsigned int n = 0; n < 4; n++) {
		TELL(sendmmsg(udp[0], m, n, 0), "sendmmsg(datagram, %u)", n);
		printf("%u %u %u\n", m[0].msg_len, m[1].msg_len, m[2].msg_len);
		TELL(sendmmsg(fd[0], m, n, 0), "sendmmsg(stream, %u)", n);
	}
	SHOW(sendmmsg(udp[0], m + 2, 1, 0));
	SHOW(sendmmsg(udp[0], m, (unsigned int)-1, 0));
	SHOW(sendmmsg(udp[0], m, 2, MSG_OOB));
	SHOW(sendmmsg(udp[0], m, 2, 0x40000));
	SHOW(sendmmsg(udp[0], m, 2, -1));
	iov[1].iov_base = NULL;
	SHOW(sendmmsg(udp[0], m, 2, 0));
	while (recv(udp[1], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	/* An error in the midst is told at the next call, or never. */
	close(udp[1]);
	SHOW(sendmmsg(udp[0], m, 1, 0));
	await(udp[0], POLLERR);
	SHOW(sendmmsg(udp[0], m, 1, 0));
	SHOW(sendmmsg(udp[0], m, 1, 0));
}

static long write_much(struct attempt *a)
{
	static char much[4 << 20];

	return write(a->fd, much, sizeof(much)) > 0;
}

static long send_little(struct attempt *a)
{
	return send(a->fd, "x", 1, 0);
}

static void drain(int fd)
{
	static char buf[1 << 20];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, 300) == 1 && recv(fd, buf, sizeof(buf), 0) > 0)
		;
}

/* Takes what comes until the call that waits for room is done; then what is left. */
static void make_room(struct attempt *a, int fd)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	static char buf[1 << 20];

	while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE))
		if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0)
			nanosleep(&moment, NULL);
	drain(fd);
}

/* A socket whose buffer is full. */
CASE(send_waits)
{
	struct timeval soon = { .tv_usec = 50000 };
	struct attempt a = { .call = write_much };
	int fd[2];
	char c;

	signal(SIGPIPE, SIG_IGN);
	small_pair(fd);
	a.fd = fd[0];
	WAITS(&a, "write(much)", make_room(&a, fd[1]));
	fill(fd[0]);
	SHOW(send(fd[0], "x", 1, MSG_DONTWAIT));
	a.call = send_little;
	WAITS(&a, "send(little)", make_room(&a, fd[1]));
	fill(fd[0]);
	MUST(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)));
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(write(fd[0], "x", 1));
	MUST(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ 0 }, sizeof(soon)));
	WAITS(&a, "send(little, then reset)", {
		struct linger now = { 1, 0 };

		setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd[1]);
	});
	SHOW(send(fd[0], "x", 1, MSG_NOSIGNAL));
	SHOW(recv(fd[0], &c, 1, MSG_DONTWAIT));
}
