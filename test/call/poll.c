// SPDX-License-Identifier: GPL-2.0-only
/* poll, ppoll, select and pselect: the events of every state, bad arguments, and when they wait. */
#include "call.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#define ALL_EVENTS 0x3fff /* each bit that there is, POLLRDHUP with them */

static void look(int fd, const char *what)
{
	struct pollfd p = { .fd = fd, .events = ALL_EVENTS };
	struct timeval none = { 0 };
	fd_set in, out, except;
	int ret;

	TELL(poll(&p, 1, 0), "poll(%s)", what);
	printf("events %x", p.revents);
	for (int bit = 0; bit < 15; bit++) {
		struct pollfd one = { .fd = fd, .events = (short)(1 << bit) };

		poll(&one, 1, 0);
		printf(" %x", one.revents);
	}
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	FD_SET(fd, &except);
	ret = select(fd + 1, &in, &out, &except, &none);
	printf("; select %d: %d %d %d\n", ret, !!FD_ISSET(fd, &in), !!FD_ISSET(fd, &out),
	       !!FD_ISSET(fd, &except));
}

CASE(poll_states)
{
	struct sockaddr_in addr, none;
	int l = bound(SOCK_STREAM | SOCK_NONBLOCK, &addr), fd[2], u, c;
	struct linger reset = { 1, 0 };
	char buf[8];

	look(socket(AF_INET, SOCK_STREAM, 0), "new stream");
	look(socket(AF_INET, SOCK_DGRAM, 0), "new datagram");
	look(socket(AF_INET6, SOCK_STREAM, 0), "new stream of IPv6");
	look(socket(AF_INET, SOCK_RAW, 1), "new raw");
	look(socket(AF_PACKET, SOCK_RAW, 0), "new packet");
	look(socket(AF_NETLINK, SOCK_RAW, 0), "new netlink");
	look(socket(AF_INET, SOCK_STREAM, 262), "new multipath");
	look(l, "listener");
	c = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(c, (void *)&addr, sizeof(addr)));
	await(l, POLLIN);
	look(l, "listener with one");
	look(c, "connected, not accepted");
	close(l);
	await(c, POLLHUP | POLLIN);
	look(c, "listener gone");
	u = bound(SOCK_STREAM, &none);
	close(u);
	c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	connect(c, (void *)&none, sizeof(none));
	await(c, POLLOUT);
	look(c, "refused");
	look(c, "refused, looked at");
	stream_pair(fd);
	look(fd[0], "connected");
	MUST(send(fd[1], "a", 1, 0) == 1);
	await(fd[0], POLLIN);
	look(fd[0], "data");
	MUST(send(fd[1], "!", 1, MSG_OOB) == 1);
	await(fd[0], POLLPRI);
	look(fd[0], "urgent");
	MUST(recv(fd[0], buf, 1, MSG_OOB) == 1);
	look(fd[0], "urgent read");
	shutdown(fd[1], SHUT_WR);
	await(fd[0], POLLRDHUP);
	look(fd[0], "half shut by the peer");
	look(fd[1], "half shut");
	shutdown(fd[0], SHUT_WR);
	await(fd[1], POLLRDHUP);
	look(fd[0], "shut by both");
	look(fd[1], "shut by both");
	stream_pair(fd);
	shutdown(fd[0], SHUT_RD);
	look(fd[0], "shut for reading");
	setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd[1]);
	await(fd[0], POLLHUP);
	look(fd[0], "reset");
	SHOW(recv(fd[0], buf, 1, MSG_DONTWAIT));
	look(fd[0], "reset and told");
	datagram_pair(fd);
	MUST(send(fd[1], "", 0, 0) == 0);
	await(fd[0], POLLIN);
	look(fd[0], "empty datagram");
	shutdown(fd[0], SHUT_RD);
	look(fd[0], "datagrams shut for reading");
	shutdown(fd[0], SHUT_RDWR);
	look(fd[0], "datagrams shut");
	close(fd[0]);
	MUST(send(fd[1], "x", 1, 0) == 1);
	await(fd[1], POLLERR);
	look(fd[1], "refused datagram");
	SHOW(recv(fd[1], buf, 1, MSG_DONTWAIT));
	look(fd[1], "refused datagram, told");
}

/* Of any number, and of many. */
CASE(poll_arguments)
{
	struct rlimit few = { 300, 300 };
	int u = socket(AF_INET, SOCK_DGRAM, 0), host = eventfd(0, 0);
	struct pollfd p[4] = {
		{ u, POLLOUT, 99 }, { host, POLLOUT, 99 }, { -1, POLLOUT, 99 }, { 250, POLLOUT, 99 }
	};
	struct pollfd many[400];
	struct timespec t = { 0 };

	for (nfds_t n = 0; n < 5; n++) {
		TELL(poll(p, n, 0), "poll(%lu)", n);
		printf("%x %x %x %x\n", p[0].revents, p[1].revents, p[2].revents, p[3].revents);
	}
	for (int i = 0; i < 400; i++)
		many[i] = (struct pollfd){ i % 2 ? u : host, POLLOUT, 0 };
	SHOW(poll(many, 300, 0));
	MUST(!setrlimit(RLIMIT_NOFILE, &few));
	SHOW(poll(many, 300, 0));
	SHOW(poll(many, 301, 0));
	SHOW(poll(many, 400, -1));
	t.tv_nsec = -1;
	SHOW(ppoll(p, 4, &t, NULL));
	SHOW(ppoll(p + 1, 1, &t, NULL));
	t.tv_nsec = 1000000000;
	SHOW(ppoll(p, 4, &t, NULL));
	t = (struct timespec){ -1, 0 };
	SHOW(ppoll(p, 1, &t, NULL));
	t = (struct timespec){ INT64_MAX, 999999999 };
	SHOW(ppoll(p, 1, &t, NULL));
	t = (struct timespec){ 0, 0 };
	SHOW(ppoll(p, 3, &t, NULL));
	SHOW(ppoll(NULL, 0, &t, NULL));
	SHOW(poll(p, 3, -5));
	SHOW(poll(p, 3, 2147483647));
	p[0].events = -1;
	p[1].events = 0;
	SHOW(poll(p, 2, 0));
	printf("%x %x\n", p[0].revents, p[1].revents);
}

CASE(select_arguments)
{
	struct rlimit few = { 300, 300 };
	int u = socket(AF_INET, SOCK_DGRAM, 0), host = eventfd(0, 0);
	struct timeval t = { 0 };
	struct timespec precise = { 0 };
	fd_set set;

	for (int n = 0; n < 8; n++) {
		FD_ZERO(&set);
		FD_SET(u, &set);
		FD_SET(host, &set);
		TELL(select(n, NULL, &set, NULL, &t), "select(%d)", n);
		printf("%d %d\n", !!FD_ISSET(u, &set), !!FD_ISSET(host, &set));
	}
	/* The kernel looks no further than its table of descriptors is long; guise's own
	 * make that long in any case. */
	MUST(dup2(host, 700) == 700);
	close(700);
	FD_SET(200, &set);
	SHOW(select(201, NULL, &set, NULL, &t));
	SHOW(select(1024, NULL, &set, NULL, &t));
	SHOW(pselect(1024, NULL, &set, NULL, &precise, NULL));
	SHOW(select(-1, NULL, &set, NULL, &t));
	SHOW(pselect(-1, NULL, &set, NULL, &precise, NULL));
	FD_CLR(200, &set);
	FD_SET(u, &set);
	t.tv_usec = -1;
	SHOW(select(8, NULL, &set, NULL, &t));
	t = (struct timeval){ -1, 0 };
	SHOW(select(8, NULL, &set, NULL, &t));
	t = (struct timeval){ 0, 2000000 };
	SHOW(select(8, NULL, &set, NULL, &t));
	FD_SET(u, &set);
	precise.tv_nsec = -1;
	SHOW(pselect(8, NULL, &set, NULL, &precise, NULL));
	precise.tv_nsec = 1000000000;
	SHOW(pselect(8, NULL, &set, NULL, &precise, NULL));
	precise = (struct timespec){ -1, 0 };
	SHOW(pselect(8, NULL, &set, NULL, &precise, NULL));
	MUST(!setrlimit(RLIMIT_NOFILE, &few));
	t = (struct timeval){ 0 };
	FD_ZERO(&set);
	FD_SET(u, &set);
	SHOW(select(1024, NULL, &set, NULL, &t));
	close(u);
	FD_ZERO(&set);
	FD_SET(u, &set);
	SHOW(select(8, NULL, &set, NULL, &t));
	SHOW(FD_ISSET(u, &set));
}

static long poll_two(struct attempt *a)
{
	struct pollfd p[2] = { { a->fd, POLLIN, 0 }, { *(int *)a->data, POLLIN, 0 } };

	return poll(p, 2, 20000);
}

static long select_two(struct attempt *a)
{
	int other = *(int *)a->data;
	struct timeval t = { 20, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(a->fd, &in);
	FD_SET(other, &in);
	return select((a->fd > other ? a->fd : other) + 1, &in, NULL, NULL, &t);
}

/* It is woken by each descriptor of the stack and of the host. */
CASE(poll_wakes)
{
	struct itimerspec soon = { .it_value = { 0, 30000000 } };
	int fd[2], udp[2], pipes[2], event = eventfd(0, 0),
				     timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct attempt a = { .call = poll_two };
	char buf[8];

	MUST(!pipe(pipes));
	for (int i = 0; i < 2; i++) {
		stream_pair(fd);
		datagram_pair(udp);
		a.fd = fd[0];
		a.data = &pipes[0];
		WAITS(&a, "poll(stream or pipe)", send(fd[1], "x", 1, 0));
		MUST(recv(fd[0], buf, 8, 0) == 1);
		WAITS(&a, "poll(stream or pipe)", MUST(write(pipes[1], "x", 1) == 1));
		MUST(read(pipes[0], buf, 8) == 1);
		a.data = &udp[0];
		WAITS(&a, "poll(stream or datagram)", send(udp[1], "x", 1, 0));
		MUST(recv(udp[0], buf, 8, 0) == 1);
		a.data = &event;
		WAITS(&a, "poll(stream or event)", eventfd_write(event, 1));
		eventfd_read(event, &(eventfd_t){ 0 });
		a.data = &timer;
		/* The timer must be late enough for the wait to be seen. */
		WAITS(&a, "poll(stream or timer)", timerfd_settime(timer, 0, &soon, NULL));
		MUST(read(timer, buf, 8) == 8);
		a.data = &pipes[0];
		WAITS(&a, "poll(end of a stream)", close(fd[1]));
		a.call = select_two;
		close(fd[0]);
		close(udp[0]);
		close(udp[1]);
	}
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

/* Signals with a mask, before the wait and in it. */
CASE(poll_signals)
{
	struct sigaction act = { .sa_handler = catch, .sa_flags = SA_RESTART };
	int udp[2], pipes[2];
	struct timespec t = { 20, 0 };
	sigset_t block, none;
	struct pollfd p[2];
	fd_set in;

	MUST(!pipe(pipes));
	datagram_pair(udp);
	p[0] = (struct pollfd){ udp[0], POLLIN, 0 };
	p[1] = (struct pollfd){ pipes[0], POLLIN, 0 };
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!sigprocmask(SIG_BLOCK, &block, NULL));
	for (nfds_t n = 1; n < 3; n++) {
		raise(SIGUSR1);
		caught = 0;
		TELL(ppoll(p, n, &t, &none), "ppoll(%lu, a signal waits)", n);
		SHOW(caught == SIGUSR1);
		TELL(ppoll(p, n, &(struct timespec){ 0, 1000000 }, &none), "ppoll(%lu)", n);
		raise(SIGUSR1);
		caught = 0;
		TELL(ppoll(p, n, &(struct timespec){ 0, 1000000 }, &block), "ppoll(%lu, kept)", n);
		SHOW(caught);
		FD_ZERO(&in);
		FD_SET(udp[0], &in);
		if (n == 2)
			FD_SET(pipes[0], &in);
		TELL(pselect(20, &in, NULL, NULL, &t, &none), "pselect(%lu, a signal waits)", n);
		SHOW(caught == SIGUSR1);
		SHOW(FD_ISSET(udp[0], &in));
	}
}
