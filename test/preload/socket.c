// SPDX-License-Identifier: GPL-2.0-only
/* Making sockets, naming them, and their options. */
#include "case.h"

#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <sys/un.h>

/* The domain of a socket that was asked for, or why there is none. */
static long domain_of(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol), domain = -1;
	socklen_t len = sizeof(domain);

	if (fd < 0)
		return -1;
	MUST(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len));
	close(fd);
	return domain;
}

CASE(family_rule)
{
	int pair[2];

	SHOW(domain_of(AF_INET, SOCK_STREAM, 0));
	SHOW(domain_of(AF_INET, SOCK_DGRAM, 0));
	SHOW(domain_of(AF_INET6, SOCK_STREAM, 0));
	SHOW(domain_of(AF_UNIX, SOCK_STREAM, 0));
	SHOW(domain_of(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	SHOW(domain_of(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG));
	SHOW(domain_of(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
	SHOW(domain_of(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
	SHOW(domain_of(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	SHOW(domain_of(AF_INET, 77, 0));
	SHOW(domain_of(4711, SOCK_STREAM, 0));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	SHOW(write(pair[0], "x", 1));
	SHOW(readable(pair[1], 0));
	SHOW(socketpair(AF_INET, SOCK_STREAM, 0, pair));
	/* The lowest free number, as for any descriptor. */
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	SHOW(open("/dev/null", O_RDONLY));
	SHOW(socket(AF_INET6, SOCK_DGRAM, 0));
	SHOW(close(5));
	SHOW(socket(AF_INET, SOCK_DGRAM, 0));
	SHOW(close(5));
	SHOW(open("/dev/null", O_RDONLY));
	SHOW(write(5, "x", 1));
}

CASE(stream_echo)
{
	struct sockaddr_in addr, peer;
	socklen_t len = sizeof(peer);
	int l, c, a;
	char buf[64];

	l = bound(SOCK_STREAM, &addr);
	SHOW(c = socket(AF_INET, SOCK_STREAM, 0));
	SHOW(bind(c, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(connect(c, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(connect(c, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(a = accept(l, (struct sockaddr *)&peer, &len));
	printf("%s %u\n", inet_ntoa(peer.sin_addr), len);
	SHOW(send(c, "ping", 4, 0));
	SHOW(recv(a, buf, sizeof(buf), 0));
	SHOW(send(a, "pong", 4, 0));
	SHOW(shutdown(a, SHUT_WR));
	SHOW(recv(c, buf, 4, MSG_WAITALL));
	SHOW(recv(c, buf, sizeof(buf), 0));
	SHOW(shutdown(c, SHUT_RDWR));
	SHOW(send(c, "x", 1, MSG_NOSIGNAL));
	SHOW(shutdown(l, 99));
	SHOW(close(a));
	SHOW(close(c));
	SHOW(close(c));
	SHOW(recv(c, buf, 1, 0));
	SHOW(close(l));
	SHOW(c = socket(AF_INET, SOCK_STREAM, 0));
	SHOW(connect(c, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(listen(c, 1));
	SHOW(connect(c, (struct sockaddr *)&addr, 3));
	SHOW(connect(0x7fffffff, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(connect(-1, (struct sockaddr *)&addr, sizeof(addr)));
	SHOW(bind(c, (struct sockaddr *)8, sizeof(addr)));
	SHOW(listen(STDIN_FILENO, 1));
}

CASE(accept_flags)
{
	struct sockaddr_in addr;
	int l, c[3], a;

	l = bound(SOCK_STREAM | SOCK_NONBLOCK, &addr);
	SHOW(accept(l, NULL, NULL));
	for (int i = 0; i < 3; i++) {
		c[i] = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(c[i], (struct sockaddr *)&addr, sizeof(addr)));
	}
	MUST(readable(l, 5000));
	SHOW(a = accept(l, NULL, NULL));
	SHOW(fcntl(a, F_GETFL));
	SHOW(fcntl(a, F_GETFD));
	SHOW(a = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	SHOW(fcntl(a, F_GETFL));
	SHOW(fcntl(a, F_GETFD));
	SHOW(accept4(l, NULL, NULL, 0x1234));
	SHOW(a = accept4(l, NULL, NULL, SOCK_CLOEXEC));
	SHOW(fcntl(a, F_GETFL));
	SHOW(fcntl(a, F_GETFD));
	SHOW(accept(l, NULL, NULL));
	/* A number that was reserved in vain is free again. */
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	SHOW(accept(c[0], NULL, NULL));
	SHOW(accept4(STDOUT_FILENO, NULL, NULL, 0));
}

CASE(socket_names)
{
	struct sockaddr_in addr, name;
	socklen_t len = sizeof(name);
	int fd[2], l;

	stream_pair(fd);
	SHOW(getsockname(fd[0], (struct sockaddr *)&name, &len));
	addr = name;
	SHOW(getpeername(fd[1], (struct sockaddr *)&name, &len));
	SHOW(memcmp(&addr, &name, sizeof(addr)));
	len = 4;
	SHOW(getsockname(fd[0], (struct sockaddr *)&name, &len));
	SHOW(len);
	l = bound(SOCK_STREAM, &addr);
	SHOW(getpeername(l, (struct sockaddr *)&name, &len));
	SHOW(getsockname(l, (struct sockaddr *)&name, NULL));
	SHOW(getsockname(l, NULL, &len));
	SHOW(getpeername(STDOUT_FILENO, (struct sockaddr *)&name, &len));
}

CASE(socket_options)
{
	int fd[2], value = 1;
	struct timeval soon = { .tv_usec = 1000 };
	socklen_t len = sizeof(value);
	char word[16], buf[4];

	stream_pair(fd);
	SHOW(setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &value, len));
	value = 0;
	SHOW(getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &value, &len));
	SHOW(value);
	SHOW(getsockopt(fd[0], SOL_SOCKET, SO_TYPE, &value, &len));
	SHOW(value);
	SHOW(getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &value, &len));
	SHOW(value);
	SHOW(getsockopt(fd[0], SOL_SOCKET, 9999, &value, &len));
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_KEEPALIVE, NULL, len));
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_KEEPALIVE, &value, 1));
	SHOW(setsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	len = sizeof(word);
	SHOW(getsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, word, &len));
	puts(word);
	SHOW(setsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, "none such", 9));
	SHOW(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	SHOW(recv(fd[0], buf, sizeof(buf), 0));
	SHOW(setsockopt(STDOUT_FILENO, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	SHOW(getsockopt(4711, SOL_SOCKET, SO_TYPE, &value, &len));
}

/* As root, who may do this, as may every program on a stack; another user is refused. */
CASE(reserved_port)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ret, port;
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);

	for (int i = 0; i < 2; i++) {
		MUST((fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
		ret = bindresvport(fd, i ? &addr : NULL);
		SHOW(ret == 0 || errno == EACCES);
		MUST(!getsockname(fd, (struct sockaddr *)&addr, &len));
		port = ntohs(addr.sin_port);
		SHOW(ret < 0 || (port >= 512 && port < 1024));
	}
	SHOW(bindresvport(fd, &addr) < 0);
	addr.sin_family = AF_INET6;
	SHOW(bindresvport(fd, &addr));
}
