// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options: every number of every level, on every kind of socket. Each
 * is asked for its default with several lengths, set to several values, and
 * asked again; each number gets a socket of its own.
 *
 * Numbers and not names: an option that one kernel has and the other has not
 * shows, whether or not this file knows it.
 */
#include "call.h"

#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

struct kind {
	const char *name;
	int family, type, protocol;
};

static const struct kind tcp = { "tcp", AF_INET, SOCK_STREAM, 0 };
static const struct kind tcp6 = { "tcp6", AF_INET6, SOCK_STREAM, 0 };
static const struct kind udp = { "udp", AF_INET, SOCK_DGRAM, 0 };
static const struct kind udp6 = { "udp6", AF_INET6, SOCK_DGRAM, 0 };
static const struct kind raw = { "raw", AF_INET, SOCK_RAW, IPPROTO_ICMP };
static const struct kind raw6 = { "raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 };
static const struct kind mptcp = { "mptcp", AF_INET, SOCK_STREAM, 262 };
static const struct kind packet = { "packet", AF_PACKET, SOCK_RAW, 0 };
static const struct kind route = { "route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE };

/* What holds a time, an address of memory, a process or a count of bytes of memory. */
static bool varies(int level, int number)
{
	switch (level) {
	case SOL_SOCKET:
		return number == SO_PEERCRED || number == SO_PEERSEC ||
		       number == 55 /* MEMINFO */ || number == SO_INCOMING_CPU ||
		       number == 57 /* COOKIE */ || number == 71 /* NETNS_COOKIE */;
	case IPPROTO_TCP:
		return number == TCP_INFO || number == TCP_TIMESTAMP || number == TCP_CC_INFO;
	case 284: /* SOL_MPTCP */
		return true;
	default:
		return false;
	}
}

static const char *level_name(int level)
{
	switch (level) {
	case SOL_SOCKET:
		return "SOL_SOCKET";
	case IPPROTO_IP:
		return "IPPROTO_IP";
	case IPPROTO_IPV6:
		return "IPPROTO_IPV6";
	case IPPROTO_TCP:
		return "IPPROTO_TCP";
	case IPPROTO_UDP:
		return "IPPROTO_UDP";
	case IPPROTO_RAW:
		return "SOL_RAW";
	case IPPROTO_ICMPV6:
		return "IPPROTO_ICMPV6";
	case SOL_PACKET:
		return "SOL_PACKET";
	case SOL_NETLINK:
		return "SOL_NETLINK";
	case 284:
		return "SOL_MPTCP";
	default:
		return "level";
	}
}

static void get(int fd, int level, int number, socklen_t room, const char *when)
{
	unsigned char value[4096];
	socklen_t len = room;
	int ret, err;

	memset(value, 0xa5, sizeof(value));
	errno = 0;
	ret = getsockopt(fd, level, number, value, &len);
	err = errno;
	printf("getsockopt(%s, %d, %u) %s = %d%s%s", level_name(level), number, room, when, ret,
	       ret ? " " : "", ret ? strerrorname_np(err) : "");
	if (ret) {
		printf("\n");
		return;
	}
	printf(" length %u", len);
	if (varies(level, number) || len > sizeof(value)) {
		printf("\n");
		return;
	}
	for (socklen_t i = 0; i < len && i < 32; i++)
		printf("%s%02x", i % 4 ? "" : " ", value[i]);
	/* Nothing is written beyond what was said. */
	for (socklen_t i = len; i < sizeof(value); i++)
		if (value[i] != 0xa5) {
			printf(" and beyond");
			break;
		}
	printf("\n");
}

static int made(const struct kind *k)
{
	int fd = socket(k->family, k->type, k->protocol);

	MUST(fd >= 0);
	return fd;
}

static void set(const struct kind *k, int level, int number, const void *value, socklen_t len,
		const char *what)
{
	static int packets = -1;
	int fd = packets;

	/* To close one of them takes the host long: one does for all. */
	if (k != &packet || fd < 0)
		fd = made(k);
	if (k == &packet)
		packets = fd;
	TELL(setsockopt(fd, level, number, value, len), "setsockopt(%s, %d, %s, %u)",
	     level_name(level), number, what, len);
	get(fd, level, number, len < 4 ? 4 : len, "then");
	if (k != &packet)
		close(fd);
}

static void one(const struct kind *k, int level, int number)
{
	static const int values[] = { 0, 1, 2, 7, -1, 64, 255, 256, 4096, 100000, 0x7fffffff };
	static const char zero[256];
	int fd = made(k), five = 5;
	socklen_t len = 4;
	char word[32];

	for (size_t i = 0; i < 5; i++)
		get(fd, level, number, (socklen_t[]){ 4, 0, 1, 8, 256 }[i], "at first");
	get(fd, level, number, (socklen_t)-1, "at first");
	EACH_BAD_POINTER(p)
	{
		len = 4;
		TELL(getsockopt(fd, level, number, p->at, &len), "getsockopt(%s, %d, value %s)",
		     level_name(level), number, p->name);
		TELL(getsockopt(fd, level, number, &five, p->at), "getsockopt(%s, %d, length %s)",
		     level_name(level), number, p->name);
	}
	close(fd);
	for (size_t i = 0; i < COUNT(values); i++) {
		snprintf(word, sizeof(word), "%d", values[i]);
		set(k, level, number, &values[i], sizeof(int), word);
	}
	set(k, level, number, zero, 0, "zeroes");
	set(k, level, number, zero, 1, "zeroes");
	set(k, level, number, zero, 8, "zeroes");
	set(k, level, number, zero, 16, "zeroes");
	set(k, level, number, zero, 256, "zeroes");
	set(k, level, number, "\1", 1, "one");
	set(k, level, number, "lo", 3, "lo");
	set(k, level, number, (struct linger[]){ { 1, 5 } }, 8, "linger");
	set(k, level, number, (struct timeval[]){ { 3, 4000 } }, 16, "time");
	set(k, level, number, (struct timeval[]){ { 3, 4000000 } }, 16, "bad time");
	set(k, level, number, zero, (socklen_t)-1, "zeroes");
	EACH_BAD_POINTER(p)
	set(k, level, number, p->at, 4, p->name);
	EACH_BAD_POINTER(p)
	set(k, level, number, p->at, 40, p->name);
}

static void every(const struct kind *k, int level, int first, int last)
{
	printf("# %s\n", k->name);
	for (int number = first; number <= last; number++)
		one(k, level, number);
}

CASE(option_socket_of_tcp)
{
	every(&tcp, SOL_SOCKET, 0, 90);
}

CASE(option_socket_of_tcp6)
{
	every(&tcp6, SOL_SOCKET, 0, 90);
}

CASE(option_socket_of_udp)
{
	every(&udp, SOL_SOCKET, 0, 90);
}

CASE(option_socket_of_others)
{
	every(&raw, SOL_SOCKET, 0, 90);
	every(&route, SOL_SOCKET, 0, 90);
}

CASE(option_socket_of_mptcp)
{
	every(&mptcp, SOL_SOCKET, 0, 90);
}

CASE(option_ip)
{
	every(&tcp, IPPROTO_IP, 0, 63);
	every(&udp, IPPROTO_IP, 0, 63);
}

CASE(option_ip_of_others)
{
	every(&raw, IPPROTO_IP, 0, 63);
	every(&tcp6, IPPROTO_IP, 0, 63);
	every(&packet, IPPROTO_IP, 0, 10);
}

CASE(option_ipv6)
{
	every(&tcp6, IPPROTO_IPV6, 0, 63);
	every(&udp6, IPPROTO_IPV6, 0, 63);
}

CASE(option_ipv6_later)
{
	/* 64 to 69 are those of ip6tables. */
	every(&udp6, IPPROTO_IPV6, 70, 85);
	every(&raw6, IPPROTO_IPV6, 0, 63);
	every(&tcp, IPPROTO_IPV6, 0, 10);
}

CASE(option_tcp)
{
	every(&tcp, IPPROTO_TCP, 0, 50);
	every(&tcp6, IPPROTO_TCP, 0, 10);
	every(&udp, IPPROTO_TCP, 0, 10);
}

CASE(option_tcp_of_mptcp)
{
	every(&mptcp, IPPROTO_TCP, 0, 50);
	every(&mptcp, 284, 0, 10);
}

CASE(option_udp)
{
	every(&udp, IPPROTO_UDP, 0, 110);
	every(&udp6, IPPROTO_UDP, 0, 5);
	every(&tcp, IPPROTO_UDP, 0, 5);
}

CASE(option_raw)
{
	every(&raw, IPPROTO_RAW, 0, 3);
	every(&raw, 1, 0, 3);
	every(&raw6, IPPROTO_RAW, 0, 10);
	every(&raw6, IPPROTO_ICMPV6, 0, 3);
}

CASE(option_packet)
{
	every(&packet, SOL_PACKET, 0, 30);
	every(&udp, SOL_PACKET, 0, 3);
}

CASE(option_netlink)
{
	every(&route, SOL_NETLINK, 0, 15);
}

CASE(option_levels)
{
	static const int levels[] = { 2, 5, 60, 132, 136, 250, 261, 271, 280, 300, -1, 0x10000 };

	for (size_t i = 0; i < COUNT(levels); i++)
		every(&tcp, levels[i], 0, 2);
	for (size_t i = 0; i < COUNT(levels); i++)
		every(&udp6, levels[i], 0, 2);
	SHOW(getsockopt(-1, SOL_SOCKET, SO_TYPE, NULL, NULL));
	SHOW(setsockopt(-1, SOL_SOCKET, SO_TYPE, NULL, 0));
	SHOW(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, NULL, NULL));
	SHOW(setsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, NULL, 0));
	SHOW(setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_REUSEADDR, NULL, 4));
	SHOW(setsockopt(socket(AF_INET, SOCK_DGRAM, 0), IPPROTO_TCP, TCP_NODELAY, NULL, 4));
}

/* Options of a connection that exists. */
CASE(option_connected)
{
	int fd[2], one = 1, opened = 0;

	stream_pair(fd);
	opened = fd[0];
	for (int number = 0; number <= 50; number++) {
		get(opened, IPPROTO_TCP, number, 4, "connected");
		if (number != TCP_REPAIR)
			TELL(setsockopt(opened, IPPROTO_TCP, number, &one, 4),
			     "setsockopt(IPPROTO_TCP, %d, connected)", number);
	}
	/* Not those that hold the port. */
	for (int number = 0; number <= 63; number++)
		if (number != 52 /* PROTOCOL: of TCP, the port */)
			get(opened, IPPROTO_IP, number, 4, "connected");
	for (int number = 0; number <= 90; number++)
		if (number != SO_RCVBUF && number != SO_SNDBUF && number != SO_PEERNAME)
			get(opened, SOL_SOCKET, number, 4, "connected");
	opened = bound(SOCK_STREAM, &(struct sockaddr_in){ 0 });
	for (int number = 0; number <= 50; number++) {
		get(opened, IPPROTO_TCP, number, 4, "listening");
		TELL(setsockopt(opened, IPPROTO_TCP, number, &one, 4),
		     "setsockopt(IPPROTO_TCP, %d, listening)", number);
	}
}
