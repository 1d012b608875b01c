// SPDX-License-Identifier: GPL-2.0-only
/* Errors that take a state to come about, by every call that may give them. */
#include "call.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>

static long by_send(int fd, const void *data, size_t n, int flags)
{
	return send(fd, data, n, flags);
}

static long by_sendto(int fd, const void *data, size_t n, int flags)
{
	return sendto(fd, data, n, flags, NULL, 0);
}

static long by_sendmsg(int fd, const void *data, size_t n, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)data, n };

	return sendmsg(fd, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
}

static long by_write(int fd, const void *data, size_t n, int flags)
{
	(void)flags;
	return write(fd, data, n);
}

static long by_recvfrom(int fd, const void *data, size_t n, int flags)
{
	return recvfrom(fd, (void *)(uintptr_t)data, n, flags, NULL, NULL);
}

static long by_recvmsg(int fd, const void *data, size_t n, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)data, n };

	return recvmsg(fd, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
}

static long by_read(int fd, const void *data, size_t n, int flags)
{
	(void)flags;
	return read(fd, (void *)(uintptr_t)data, n);
}

static const struct way {
	const char *name;
	long (*move)(int fd, const void *data, size_t n, int flags);
	bool flags; /* takes them */
} senders[] = { { "send", by_send, true },
		{ "sendto", by_sendto, true },
		{ "sendmsg", by_sendmsg, true },
		{ "write", by_write, false } },
  receivers[] = { { "recvfrom", by_recvfrom, true },
		  { "recvmsg", by_recvmsg, true },
		  { "read", by_read, false } };

static char much[100000];

static void full_pair(int fd[2])
{
	small_pair(fd);
	fill(fd[0]);
}

static void reset(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(fd);
}

CASE(error_of_senders)
{
	int fd[2], udp[2], one = 1;
	struct sockaddr_in all = { .sin_family = AF_INET,
				   .sin_port = htons(9),
				   .sin_addr = { htonl(0x7fffffff) } };

	signal(SIGPIPE, SIG_IGN);
	for (const struct way *w = senders; w < senders + COUNT(senders); w++) {
		full_pair(fd);
		MUST(!fcntl(fd[0], F_SETFL, O_NONBLOCK));
		TELL(w->move(fd[0], much, 1, 0), "%s(full)", w->name);
		reset(fd[1]);
		await(fd[0], POLLHUP);
		TELL(w->move(fd[0], much, 1, 0), "%s(reset)", w->name);
		TELL(w->move(fd[0], much, 1, 0), "%s(reset and told)", w->name);
		close(fd[0]);
		stream_pair(fd);
		shutdown(fd[0], SHUT_WR);
		TELL(w->move(fd[0], much, 1, 0), "%s(shut)", w->name);
		datagram_pair(udp);
		if (w->flags)
			TELL(w->move(udp[0], much, 1, MSG_OOB), "%s(datagram, urgent)", w->name);
		TELL(w->move(udp[0], much, 65508, 0), "%s(too big a datagram)", w->name);
		TELL(w->move(socket(AF_INET, SOCK_DGRAM, 0), much, 1, 0), "%s(to nobody)", w->name);
		TELL(w->move(socket(AF_INET, SOCK_STREAM, 0), much, 1, 0), "%s(unconnected)",
		     w->name);
		close(udp[1]);
		TELL(w->move(udp[0], much, 1, 0), "%s(refused)", w->name);
		await(udp[0], POLLERR);
		TELL(w->move(udp[0], much, 1, 0), "%s(refused before)", w->name);
		udp[0] = socket(AF_INET, SOCK_DGRAM, 0);
		MUST(!setsockopt(udp[0], SOL_SOCKET, SO_BROADCAST, &one, 4));
		TELL(connect(udp[0], (void *)&all, sizeof(all)), "connect(everybody)");
		TELL(setsockopt(udp[0], SOL_SOCKET, SO_BROADCAST, &(int){ 0 }, 4), "setsockopt()");
		TELL(w->move(udp[0], much, 1, 0), "%s(everybody)", w->name);
	}
}

CASE(error_of_receivers)
{
	int fd[2], udp[2];

	for (const struct way *w = receivers; w < receivers + COUNT(receivers); w++) {
		stream_pair(fd);
		MUST(!fcntl(fd[0], F_SETFL, O_NONBLOCK));
		TELL(w->move(fd[0], much, 1, 0), "%s(nothing)", w->name);
		reset(fd[1]);
		await(fd[0], POLLHUP);
		TELL(w->move(fd[0], much, 1, 0), "%s(reset)", w->name);
		TELL(w->move(fd[0], much, 1, 0), "%s(reset and told)", w->name);
		TELL(w->move(socket(AF_INET, SOCK_STREAM, 0), much, 1, 0), "%s(unconnected)",
		     w->name);
		datagram_pair(udp);
		close(udp[1]);
		MUST(send(udp[0], "x", 1, 0) == 1);
		await(udp[0], POLLERR);
		TELL(w->move(udp[0], much, 1, 0), "%s(refused)", w->name);
	}
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	(void)sig;
	caught++;
}

static long attempt_way(struct attempt *a)
{
	const struct way *w = a->data;

	return w->move(a->fd, much, 1, 0);
}

static void interrupted(struct attempt *a, const char *name)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	char what[64];

	caught = 0;
	while (!attempt_waits(a)) {
		/* There was room after all. */
		MUST(!pthread_join(a->thread, NULL));
		MUST(a->ret == 1);
		fill(a->fd);
	}
	MUST(!pthread_kill(a->thread, SIGUSR1));
	while (!caught)
		nanosleep(&moment, NULL);
	snprintf(what, sizeof(what), "%s(interrupted)", name);
	attempt_ends(a, what);
}

static long attempt_connect(struct attempt *a)
{
	return connect(a->fd, a->data, sizeof(struct sockaddr_in));
}

static long attempt_accept4(struct attempt *a)
{
	return accept4(a->fd, NULL, NULL, 0);
}

/* A listener that answers no more; every other connection waits. */
static int deaf(struct sockaddr_in *addr)
{
	struct timespec moment = { .tv_nsec = 20000000 };
	int l = bound(SOCK_STREAM, addr), c;

	MUST(!listen(l, 0));
	for (int i = 0; i < 4; i++) {
		c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(c, (void *)addr, sizeof(*addr));
		nanosleep(&moment, NULL);
	}
	return l;
}

CASE(error_by_signal)
{
	struct sigaction act = { .sa_handler = catch };
	struct attempt a = { .call = attempt_way };
	struct sockaddr_in addr;
	int fd[2];

	MUST(!sigaction(SIGUSR1, &act, NULL));
	for (const struct way *w = senders; w < senders + COUNT(senders); w++) {
		full_pair(fd);
		a.fd = fd[0];
		a.data = (void *)(uintptr_t)w;
		interrupted(&a, w->name);
	}
	stream_pair(fd);
	a.fd = fd[0];
	for (const struct way *w = receivers; w < receivers + COUNT(receivers); w++) {
		a.data = (void *)(uintptr_t)w;
		interrupted(&a, w->name);
	}
	a.fd = bound(SOCK_STREAM, &addr);
	a.call = attempt_accept4;
	interrupted(&a, "accept4");
	deaf(&addr);
	a.fd = socket(AF_INET, SOCK_STREAM, 0);
	a.call = attempt_connect;
	a.data = &addr;
	interrupted(&a, "connect");
	TELL(connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), (void *)&addr, sizeof(addr)),
	     "connect(to the deaf)");
}

CASE(error_of_connect)
{
	struct sockaddr_in addr, none = loopback(9);
	int l, fd, one = 1;
	/* From one port to another: the low half, and the high half. */
	uint32_t range = 45100u << 16 | 45100u;

	deaf(&addr);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &one, 4));
	SHOW(connect(fd, (void *)&addr, sizeof(addr)));
	for (int i = 0; i < 2; i++) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		TELL(setsockopt(fd, IPPROTO_IP, 51, &range, 4), "setsockopt(LOCAL_PORT_RANGE)");
		TELL(connect(fd, (void *)&none, sizeof(none)), "connect(datagram %d of one port)",
		     i);
	}
	l = bound(SOCK_STREAM, &addr);
	for (int i = 0; i < 2; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		TELL(setsockopt(fd, IPPROTO_IP, 51, &range, 4), "setsockopt(LOCAL_PORT_RANGE)");
		TELL(connect(fd, (void *)&addr, sizeof(addr)), "connect(stream %d of one port)", i);
		TELL(bind(socket(AF_INET, SOCK_STREAM, 0),
			  (void *)&(struct sockaddr_in){ .sin_family = AF_INET,
							 .sin_port = htons(45100) },
			  16),
		     "bind(that port)");
	}
	close(l);
}

CASE(error_of_others)
{
	int ep[8], fd[2], pipes[2], file = memfd_create("content", 0);
	struct sockaddr_in addr;
	struct epoll_event ev = { .events = EPOLLIN };
	off64_t offset = 0;

	SHOW(accept4(bound(SOCK_STREAM | SOCK_NONBLOCK, &addr), NULL, NULL, 0));
	SHOW(accept4(socket(AF_INET, SOCK_DGRAM, 0), NULL, NULL, 0));
	EACH_BAD_POINTER(p)
	{
		struct timespec now = { 0 };

		TELL(poll(p->at, 1, 0), "poll(%s)", p->name);
		TELL(ppoll(p->at, 1, &now, NULL), "ppoll(%s)", p->name);
		TELL(fcntl64(socket(AF_INET, SOCK_STREAM, 0), F_GETOWN_EX, p->at), "fcntl64(%s)",
		     p->name);
	}
	SHOW(fcntl64(socket(AF_INET, SOCK_STREAM, 0), 9999));
	SHOW(fcntl64(socket(AF_INET, SOCK_STREAM, 0), F_NOTIFY, 0));
	SHOW(pwritev(socket(AF_INET, SOCK_STREAM, 0), NULL, 0, -1));
	/* Too deep a nest, and a ring. */
	for (int i = 0; i < 8; i++)
		ep[i] = epoll_create1(0);
	for (int i = 0; i < 7; i++)
		TELL(epoll_ctl(ep[i + 1], EPOLL_CTL_ADD, ep[i], &ev), "epoll_ctl(depth %d)", i);
	TELL(epoll_ctl(ep[0], EPOLL_CTL_ADD, ep[2], &ev), "epoll_ctl(a ring)");
	full_pair(fd);
	MUST(!fcntl(fd[0], F_SETFL, O_NONBLOCK));
	MUST(write(file, much, sizeof(much)) == sizeof(much));
	SHOW(sendfile(fd[0], file, &offset, 10));
	SHOW(sendfile64(fd[0], file, &offset, 10));
	SHOW(sendfile64(fd[0], file, (off64_t *)8, 10));
	MUST(!pipe2(pipes, O_NONBLOCK));
	SHOW(splice(pipes[0], NULL, fd[0], NULL, 10, SPLICE_F_NONBLOCK));
	SHOW(splice(fd[0], NULL, pipes[1], NULL, 10, SPLICE_F_NONBLOCK));
}
