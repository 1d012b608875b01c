// SPDX-License-Identifier: GPL-2.0-only
/* Making, naming, connecting and shutting sockets: each error of the manual, and each state. */
#include "call.h"

#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <sys/resource.h>
#include <sys/un.h>

/* The numbers of families whose sockets carry IP, and some of the host's. */
CASE(socket_arguments)
{
	static const int families[] = { 0,         AF_UNIX, AF_INET, AF_INET6, AF_NETLINK,
					AF_PACKET, AF_MAX,  200,     -1 };
	static const int types[] = { 0, 1, 2, 3, 4, 5, 6, 10, 11, 15, -1 };
	static const int protocols[] = { -1, 0, 1, 2, 6, 17, 58, 132, 136, 255, 256, 262, 1000 };
	static const int flags[] = { SOCK_NONBLOCK, SOCK_CLOEXEC, 0x100, 0x10000, 1 << 30 };
	int fd;

	for (size_t f = 0; f < COUNT(families); f++)
		for (size_t t = 0; t < COUNT(types); t++)
			for (size_t p = 0; p < COUNT(protocols); p++) {
				int type = types[t], protocol = protocols[p];

				/* Where protocols are those of netlink, or of Ethernet. */
				if (families[f] == AF_NETLINK || families[f] == AF_PACKET)
					protocol = 0;
				/* SCTP and DCCP: whether a host has them is its own affair. */
				if (protocol == 132 || type == 5 || type == 6)
					continue;
				fd = socket(families[f], type, protocol);
				errno = fd < 0 ? errno : 0;
				tell_result(fd < 0 ? -1 : 0, "socket(%d, %d, %d)", families[f],
					    type, protocol);
				if (fd >= 0)
					close(fd);
			}
	for (size_t i = 0; i < COUNT(flags); i++) {
		fd = (int)TELL(socket(AF_INET, SOCK_DGRAM | flags[i], 0),
			       "socket(SOCK_DGRAM and %x)", flags[i]);
		if (fd < 0)
			continue;
		TELL(fcntl(fd, F_GETFL), "fcntl(F_GETFL)");
		TELL(fcntl(fd, F_GETFD), "fcntl(F_GETFD)");
		close(fd);
	}
}

CASE(socket_pairs)
{
	int pair[2];

	EACH_BAD_POINTER(p)
	TELL(socketpair(AF_INET, SOCK_STREAM, 0, p->at), "socketpair(AF_INET, %s)", p->name);
	EACH_BAD_POINTER(p)
	TELL(socketpair(AF_UNIX, SOCK_STREAM, 0, p->at), "socketpair(AF_UNIX, %s)", p->name);
	SHOW(socketpair(AF_INET, SOCK_STREAM, 0, pair));
	SHOW(socketpair(AF_INET, SOCK_STREAM, 4711, pair));
	SHOW(socketpair(AF_INET, 77, 0, pair));
	SHOW(socketpair(AF_INET, 3, 0, pair));
	SHOW(socketpair(AF_INET6, SOCK_DGRAM, 0, pair));
	SHOW(socketpair(AF_INET, SOCK_DGRAM | 0x4000000, 0, pair));
	SHOW(socketpair(AF_NETLINK, SOCK_RAW, 0, pair));
	SHOW(socketpair(AF_PACKET, SOCK_RAW, 0, pair));
	SHOW(socketpair(AF_MAX, SOCK_STREAM, 0, pair));
	SHOW(socketpair(-1, SOCK_STREAM, 0, pair));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 77, pair));
}

CASE(socket_no_numbers)
{
	struct rlimit few = { 8, 8 };
	struct sockaddr_in addr;
	int l = bound(SOCK_STREAM, &addr), c = socket(AF_INET, SOCK_STREAM, 0);
	int pair[2];

	MUST(!connect(c, (void *)&addr, sizeof(addr)));
	await(l, POLLIN);
	while (dup(0) < 7)
		;
	/* guise's own descriptors lie above, where a new limit does not reach. */
	MUST(!setrlimit(RLIMIT_NOFILE, &few));
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	SHOW(socket(AF_UNIX, SOCK_STREAM, 0));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	SHOW(accept(l, NULL, NULL));
	SHOW(accept4(l, NULL, NULL, SOCK_NONBLOCK));
	SHOW(dup(c));
	SHOW(dup2(c, 8));
	SHOW(dup2(c, 100));
	SHOW(dup3(c, 8, 0));
	SHOW(fcntl(c, F_DUPFD, 0));
	SHOW(fcntl(c, F_DUPFD, 8));
	SHOW(close(7));
	SHOW(accept(l, NULL, NULL));
}

static void every_length(int fd, const char *word, const struct sockaddr *addr, socklen_t most)
{
	for (socklen_t len = 0; len <= most; len++)
		TELL(bind(fd, addr, len), "bind(%s, %u)", word, len);
	for (socklen_t len = 0; len <= most; len++)
		TELL(connect(fd, addr, len), "connect(%s, %u)", word, len);
	TELL(bind(fd, addr, (socklen_t)-1), "bind(%s, -1)", word);
	TELL(connect(fd, addr, (socklen_t)-1), "connect(%s, -1)", word);
	TELL(bind(fd, addr, 129), "bind(%s, 129)", word);
	TELL(connect(fd, addr, 129), "connect(%s, 129)", word);
	EACH_BAD_POINTER(p)
	{
		TELL(bind(fd, p->at, 16), "bind(%s, %s)", word, p->name);
		TELL(connect(fd, p->at, 16), "connect(%s, %s)", word, p->name);
		TELL(bind(fd, p->at, 0), "bind(%s, %s, 0)", word, p->name);
		TELL(connect(fd, p->at, 0), "connect(%s, %s, 0)", word, p->name);
	}
}

CASE(address_lengths)
{
	/* Addresses that no host has, so that it has no effect. */
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr = { htonl(0x01020304) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = { { { 0x20, 1 } } } };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };

	for (size_t t = 0; t < COUNT(types); t++) {
		every_length(socket(AF_INET, types[t], types[t] == SOCK_RAW), "v4", (void *)&v4,
			     20);
		every_length(socket(AF_INET6, types[t], types[t] == SOCK_RAW ? 58 : 0), "v6",
			     (void *)&v6, 32);
		every_length(socket(AF_INET, types[t], types[t] == SOCK_RAW), "v6 of v4",
			     (void *)&v6, 32);
		every_length(socket(AF_INET6, types[t], types[t] == SOCK_RAW ? 58 : 0), "v4 of v6",
			     (void *)&v4, 20);
	}
}

static void each_family(int type, int family)
{
	struct sockaddr_storage any = { 0 };

	for (int f = 0; f < 45; f++) {
		int fd = socket(family, type, 0);

		any.ss_family = (sa_family_t)f;
		TELL(bind(fd, (void *)&any, sizeof(any)), "bind(%d, %d, family %d)", family, type,
		     f);
		TELL(connect(fd, (void *)&any, sizeof(any)), "connect(%d, %d, family %d)", family,
		     type, f);
		close(fd);
	}
}

CASE(address_families)
{
	each_family(SOCK_DGRAM, AF_INET);
	each_family(SOCK_DGRAM, AF_INET6);
	each_family(SOCK_STREAM, AF_INET);
	each_family(SOCK_STREAM, AF_INET6);
}

static void try_bind(int type, const char *text, int port, const char *what)
{
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in *v4 = (void *)&addr;
	struct sockaddr_in6 *v6 = (void *)&addr;
	int fd;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
	} else {
		MUST(inet_pton(AF_INET6, text, &v6->sin6_addr) == 1);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
	}
	fd = socket(addr.ss_family, type, 0);
	TELL(bind(fd, (void *)&addr, sizeof(addr)), "bind(%s, %s)", what, text);
	TELL(bind(fd, (void *)&addr, sizeof(addr)), "bind(%s, %s) again", what, text);
	close(fd);
	fd = socket(addr.ss_family, type | SOCK_NONBLOCK, 0);
	TELL(connect(fd, (void *)&addr, sizeof(addr)), "connect(%s, %s)", what, text);
	TELL(connect(fd, (void *)&addr, sizeof(addr)), "connect(%s, %s) again", what, text);
	close(fd);
}

CASE(address_kinds)
{
	static const char *const texts[] = {
		"0.0.0.0",   "127.0.0.1", "127.1.2.3", "127.255.255.255",  "255.255.255.255",
		"224.0.0.1", "239.1.2.3", "240.0.0.1", "192.0.2.1",        "1.2.3.4",
		"0.1.2.3",   "::",        "::1",       "::ffff:127.0.0.1", "::ffff:192.0.2.1",
		"ff02::1",   "ff01::1",   "fe80::1",   "2001:db8::1",      "::127.0.0.1",
		"::2",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		try_bind(SOCK_STREAM, texts[i], 45000, "stream");
		try_bind(SOCK_DGRAM, texts[i], 45000, "datagram");
	}
	try_bind(SOCK_STREAM, "127.0.0.1", 1, "low port");
	try_bind(SOCK_DGRAM, "127.0.0.1", 1, "low port");
}

CASE(address_in_use)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };

	for (size_t t = 0; t < 2; t++)
		for (int reuse = 0; reuse < 16; reuse++) {
			struct sockaddr_in addr = loopback(0), any = loopback(0);
			socklen_t len = sizeof(addr);
			int one = 1, a = socket(AF_INET, types[t], 0);
			int b = socket(AF_INET, types[t], 0), c = socket(AF_INET, types[t], 0);

			if (reuse & 1)
				setsockopt(a, SOL_SOCKET, SO_REUSEADDR, &one, 4);
			if (reuse & 2)
				setsockopt(b, SOL_SOCKET, SO_REUSEADDR, &one, 4);
			if (reuse & 4)
				setsockopt(a, SOL_SOCKET, SO_REUSEPORT, &one, 4);
			if (reuse & 8)
				setsockopt(b, SOL_SOCKET, SO_REUSEPORT, &one, 4);
			MUST(!bind(a, (void *)&addr, len));
			MUST(!getsockname(a, (void *)&addr, &len));
			any = addr;
			any.sin_addr.s_addr = 0;
			TELL(bind(b, (void *)&addr, len), "bind(%d, reuse %d)", types[t], reuse);
			TELL(bind(c, (void *)&any, len), "bind(%d, reuse %d, any)", types[t],
			     reuse);
			TELL(listen(a, 1), "listen(a)");
			TELL(listen(b, 1), "listen(b)");
			TELL(listen(c, 1), "listen(c)");
			close(a);
			close(b);
			close(c);
		}
}

CASE(listen_states)
{
	static const int backlogs[] = { -1, 0, 1, 128, 1 << 20 };
	static const int kinds[][3] = { { AF_INET, SOCK_STREAM, 0 },  { AF_INET, SOCK_DGRAM, 0 },
					{ AF_INET, SOCK_RAW, 1 },     { AF_PACKET, SOCK_RAW, 0 },
					{ AF_NETLINK, SOCK_RAW, 0 },  { AF_INET6, SOCK_STREAM, 0 },
					{ AF_INET, SOCK_STREAM, 262 } };
	struct sockaddr_in addr;
	int fd[2], l;

	for (size_t k = 0; k < COUNT(kinds); k++)
		for (size_t b = 0; b < COUNT(backlogs); b++) {
			l = socket(kinds[k][0], kinds[k][1] | SOCK_NONBLOCK, kinds[k][2]);
			TELL(listen(l, backlogs[b]), "listen(%d %d, %d)", kinds[k][0], kinds[k][1],
			     backlogs[b]);
			TELL(accept(l, NULL, NULL), "accept(%d %d)", kinds[k][0], kinds[k][1]);
			TELL(accept4(l, NULL, NULL, -1), "accept4(%d %d, -1)", kinds[k][0],
			     kinds[k][1]);
			TELL(shutdown(l, SHUT_RDWR), "shutdown(%d %d)", kinds[k][0], kinds[k][1]);
			TELL(listen(l, 1), "listen(%d %d, again)", kinds[k][0], kinds[k][1]);
			close(l);
		}
	stream_pair(fd);
	SHOW(listen(fd[0], 1));
	SHOW(accept(fd[0], NULL, NULL));
	SHOW(bind(fd[0], (void *)&(struct sockaddr_in){ .sin_family = AF_INET }, 16));
	SHOW(listen(-1, 1));
	SHOW(listen(STDIN_FILENO, 1));
	SHOW(listen(4711, 1));
	SHOW(accept(-1, NULL, NULL));
	SHOW(accept(STDIN_FILENO, NULL, NULL));
	SHOW(accept4(-1, NULL, NULL, 0));
	SHOW(accept4(STDIN_FILENO, NULL, NULL, 0));
	SHOW(bind(-1, NULL, 0));
	SHOW(bind(STDIN_FILENO, NULL, 0));
	SHOW(connect(STDIN_FILENO, NULL, 0));
	SHOW(shutdown(STDIN_FILENO, 0));
	SHOW(shutdown(-1, 0));
	l = bound(SOCK_STREAM, &addr);
	SHOW(connect(l, (void *)&addr, sizeof(addr)));
	SHOW(send(l, "x", 1, MSG_NOSIGNAL));
	SHOW(recv(l, NULL, 0, MSG_DONTWAIT));
	SHOW(bind(l, (void *)&addr, sizeof(addr)));
}

/* Where accept and the names put addresses. */
CASE(name_places)
{
	struct sockaddr_in addr;
	char *edge = before_the_edge(16);
	int l = bound(SOCK_STREAM, &addr), c, a, fd[2], rest = 0;
	socklen_t len;

	EACH_BAD_POINTER(p)
	{
		c = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(c, (void *)&addr, sizeof(addr)));
		len = 16;
		a = (int)TELL(accept(l, p->at, &len), "accept(address %s)", p->name);
		close(a < 0 ? -1 : a);
		close(c);
		c = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(c, (void *)&addr, sizeof(addr)));
		a = (int)TELL(accept4(l, (void *)edge, p->at, SOCK_CLOEXEC), "accept4(length %s)",
			      p->name);
		close(a < 0 ? -1 : a);
		close(c);
	}
	/* Connections for which accept could not store the peer's name are gone. */
	MUST(!fcntl(l, F_SETFL, O_NONBLOCK));
	while (accept(l, NULL, NULL) >= 0)
		rest++;
	printf("%d are left\n", rest);
	stream_pair(fd);
	EACH_BAD_POINTER(p)
	{
		len = 16;
		TELL(getsockname(fd[0], p->at, &len), "getsockname(address %s)", p->name);
		TELL(getsockname(fd[0], (void *)edge, p->at), "getsockname(length %s)", p->name);
		TELL(getpeername(fd[0], p->at, &len), "getpeername(address %s)", p->name);
		TELL(getpeername(fd[0], (void *)edge, p->at), "getpeername(length %s)", p->name);
	}
	for (int n = -1; n < 20; n++) {
		len = (socklen_t)n;
		TELL(getsockname(fd[0], (void *)&addr, &len), "getsockname(%d)", n);
		printf("length %d\n", len);
		len = (socklen_t)n;
		TELL(getpeername(fd[0], (void *)&addr, &len), "getpeername(%d)", n);
		printf("length %d\n", len);
	}
	len = 17;
	SHOW(getsockname(fd[0], (void *)edge, &len));
	SHOW(getsockname(-1, (void *)edge, &len));
	SHOW(getpeername(-1, (void *)edge, &len));
	SHOW(getsockname(STDIN_FILENO, (void *)edge, &len));
	SHOW(getpeername(STDIN_FILENO, (void *)edge, &len));
	SHOW(getpeername(l, (void *)edge, &len));
	SHOW(getpeername(socket(AF_INET, SOCK_DGRAM, 0), (void *)edge, &len));
	SHOW(getpeername(socket(AF_NETLINK, SOCK_RAW, 0), (void *)edge, &len));
	SHOW(getpeername(socket(AF_PACKET, SOCK_RAW, 0), (void *)edge, &len));
}

static void connect_states(int family, int type, int protocol)
{
	struct sockaddr_in addr, none = { .sin_family = AF_UNSPEC };
	int l = bound(SOCK_STREAM, &addr), fd = socket(family, type, protocol), err = 0;
	socklen_t len = sizeof(err);

	printf("# %d %d %d\n", family, type, protocol);
	SHOW(connect(fd, (void *)&none, sizeof(none)));
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	SHOW(connect(fd, (void *)&none, sizeof(none)));
	SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
	SHOW(getpeername(fd, (void *)&none, &len));
	close(fd);
	/* Closed ports. */
	close(l);
	fd = socket(family, type, protocol);
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
	SHOW(recv(fd, &err, 1, MSG_DONTWAIT));
	SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	len = sizeof(err);
	SHOW(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	SHOW(err);
	close(fd);
	fd = socket(family, type | SOCK_NONBLOCK, protocol);
	err = connect(fd, (void *)&addr, sizeof(addr));
	tell_result(err, "connect(nobody, without waiting)");
	await(fd, POLLOUT);
	len = sizeof(err);
	SHOW(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	SHOW(err);
	SHOW(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	SHOW(err);
	SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
	/* To itself: a simultaneous open. */
	close(fd);
}

CASE(connect_in_every_state)
{
	connect_states(AF_INET, SOCK_STREAM, 0);
	connect_states(AF_INET, SOCK_DGRAM, 0);
	connect_states(AF_INET6, SOCK_STREAM, 0);
	connect_states(AF_INET, SOCK_STREAM, 262);
}

CASE(connect_errors)
{
	struct sockaddr_in addr, far = { .sin_family = AF_INET,
					 .sin_port = htons(9),
					 .sin_addr = { htonl(0xc0000201) } };
	int l, c[3], fd;

	/* No route; a source that is bound; a connect() of an address that is taken. */
	SHOW(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&far, sizeof(far)));
	SHOW(connect(socket(AF_INET, SOCK_DGRAM, 0), (void *)&far, sizeof(far)));
	far.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	SHOW(connect(socket(AF_INET, SOCK_DGRAM, 0), (void *)&far, sizeof(far)));
	SHOW(connect(-1, (void *)&far, sizeof(far)));
	l = bound(SOCK_STREAM, &addr);
	for (int i = 0; i < 2; i++) {
		int one = 1;
		struct sockaddr_in me = loopback(45001);

		c[i] = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(c[i], SOL_SOCKET, SO_REUSEADDR, &one, 4);
		SHOW(bind(c[i], (void *)&me, sizeof(me)));
		SHOW(connect(c[i], (void *)&addr, sizeof(addr)));
	}
	/* A full queue of one connection: here EAGAIN and EALREADY occur. */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	await(fd, POLLOUT);
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	SHOW(listen(l, 0));
	for (int i = 0; i < 3; i++) {
		c[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(c[i], (void *)&addr, sizeof(addr));
	}
	SHOW(connect(c[2], (void *)&addr, sizeof(addr)));
	SHOW(send(c[2], "x", 1, MSG_NOSIGNAL));
	SHOW(shutdown(c[2], SHUT_WR));
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	SHOW(connect(fd, (void *)&far, sizeof(far)));
	SHOW(connect(socket(AF_PACKET, SOCK_RAW, 0), (void *)&far, sizeof(far)));
	SHOW(connect(socket(AF_NETLINK, SOCK_RAW, 0), (void *)&far, sizeof(far)));
}

static void show_ends(const char *when, int fd[2])
{
	char buf[8];

	printf("# %s\n", when);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { .fd = fd[i], .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };

		TELL(poll(&p, 1, 0), "poll(end %d)", i);
		printf("events %x\n", p.revents);
		TELL(send(fd[i], "ab", 2, MSG_NOSIGNAL | MSG_DONTWAIT), "send(end %d)", i);
		TELL(recv(fd[i], buf, 1, MSG_DONTWAIT), "recv(end %d)", i);
	}
}

CASE(shutdown_states)
{
	static const int hows[] = { SHUT_RD, SHUT_WR, SHUT_RDWR, 3, -1 };
	int fd[2];

	for (size_t h = 0; h < COUNT(hows); h++)
		for (size_t g = 0; g < COUNT(hows); g++) {
			struct timespec moment = { .tv_nsec = 20000000 };

			stream_pair(fd);
			SHOW(send(fd[0], "data", 4, 0));
			await(fd[1], POLLIN);
			TELL(shutdown(fd[0], hows[h]), "shutdown(end 0, %d)", hows[h]);
			TELL(shutdown(fd[1], hows[g]), "shutdown(end 1, %d)", hows[g]);
			nanosleep(&moment, NULL);
			show_ends("stream", fd);
			close(fd[0]);
			close(fd[1]);
			datagram_pair(fd);
			TELL(shutdown(fd[0], hows[h]), "shutdown(datagram 0, %d)", hows[h]);
			TELL(shutdown(fd[1], hows[g]), "shutdown(datagram 1, %d)", hows[g]);
			show_ends("datagram", fd);
			close(fd[0]);
			close(fd[1]);
		}
	SHOW(shutdown(socket(AF_INET, SOCK_STREAM, 0), SHUT_RD));
	SHOW(shutdown(socket(AF_INET, SOCK_DGRAM, 0), SHUT_RD));
	SHOW(shutdown(socket(AF_INET, SOCK_RAW, 1), SHUT_RD));
	SHOW(shutdown(socket(AF_PACKET, SOCK_RAW, 0), SHUT_RD));
	SHOW(shutdown(socket(AF_NETLINK, SOCK_RAW, 0), SHUT_RD));
}
