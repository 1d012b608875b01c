// SPDX-License-Identifier: GPL-2.0-only
/* epoll: every flag and error, members of both kinds, nests, and members that go while it waits. */
#include "call.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static void wait_and_show(int ep, int max, const char *what)
{
	struct epoll_event ev[8];
	int n = (int)TELL(epoll_wait(ep, ev, max, 0), "epoll_wait(%s)", what);

	/* In no order that both keep. */
	for (uint64_t data = 0; data < 64; data++)
		for (int i = 0; i < n; i++)
			if (ev[i].data.u64 == data)
				printf("member %llu: %x\n", (unsigned long long)data, ev[i].events);
}

static int add(int ep, int fd, uint32_t events, uint64_t data)
{
	return epoll_ctl(ep, EPOLL_CTL_ADD, fd,
			 &(struct epoll_event){ .events = events, .data.u64 = data });
}

CASE(epoll_creation)
{
	SHOW(epoll_create(0));
	SHOW(epoll_create(-1));
	SHOW(epoll_create(1));
	SHOW(epoll_create1(1));
	SHOW(epoll_create1(-1));
	SHOW(epoll_create1(EPOLL_CLOEXEC));
	SHOW(fcntl(4, F_GETFD));
}

static void arguments(int ep, int fd, const char *what)
{
	static const uint32_t flags[] = { 0,
					  EPOLLIN,
					  EPOLLET,
					  EPOLLONESHOT,
					  EPOLLEXCLUSIVE,
					  EPOLLEXCLUSIVE | EPOLLIN | EPOLLET,
					  EPOLLEXCLUSIVE | EPOLLONESHOT,
					  EPOLLEXCLUSIVE | EPOLLRDHUP,
					  EPOLLWAKEUP,
					  0xffffffff };
	static const int ops[] = { 0, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, 4, -1 };

	printf("# %s\n", what);
	for (size_t o = 0; o < COUNT(ops); o++)
		for (size_t f = 0; f < COUNT(flags); f++) {
			struct epoll_event ev = { .events = flags[f] };

			TELL(epoll_ctl(ep, ops[o], fd, &ev), "epoll_ctl(%d, absent, %x)", ops[o],
			     flags[f]);
			epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
			ev.events = EPOLLIN;
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
			ev.events = flags[f];
			TELL(epoll_ctl(ep, ops[o], fd, &ev), "epoll_ctl(%d, present, %x)", ops[o],
			     flags[f]);
			epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
			ev.events = EPOLLIN | EPOLLEXCLUSIVE;
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
			ev.events = flags[f];
			TELL(epoll_ctl(ep, ops[o], fd, &ev), "epoll_ctl(%d, exclusive, %x)", ops[o],
			     flags[f]);
			epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
		}
	for (size_t o = 0; o < COUNT(ops); o++)
		EACH_BAD_POINTER(p)
		{
			TELL(epoll_ctl(ep, ops[o], fd, p->at), "epoll_ctl(%d, %s)", ops[o],
			     p->name);
			epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
		}
}

CASE(epoll_arguments)
{
	int ep = epoll_create1(0), other = epoll_create1(0);
	int udp = socket(AF_INET, SOCK_DGRAM, 0), pipes[2];

	MUST(!pipe(pipes));
	arguments(ep, udp, "a socket");
	arguments(ep, pipes[0], "a pipe");
	arguments(ep, other, "an epoll");
	arguments(ep, ep, "itself");
	arguments(ep, -1, "nothing");
	arguments(ep, 4711, "nothing");
	arguments(ep, open("/dev/null", O_RDWR), "what cannot wait");
	arguments(ep, open("/", O_RDONLY), "a folder");
	arguments(-1, udp, "no epoll");
	arguments(4711, udp, "no epoll");
	arguments(udp, pipes[0], "a socket for an epoll");
	arguments(udp, udp, "a socket for itself");
	arguments(pipes[0], udp, "a pipe for an epoll");
	/* An error stays one when the epoll has members of both kinds. */
	SHOW(add(ep, udp, EPOLLIN, 1));
	SHOW(add(ep, udp, EPOLLIN, 1));
	SHOW(add(ep, pipes[0], EPOLLIN, 2));
	SHOW(add(ep, pipes[0], EPOLLIN, 2));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, udp, NULL));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, udp, NULL));
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp, &(struct epoll_event){ 0 }));
}

static void wait_arguments(int ep, const char *what)
{
	struct epoll_event ev[2];
	struct timespec t = { 0 };

	printf("# %s\n", what);
	SHOW(epoll_wait(ep, ev, 0, 0));
	SHOW(epoll_wait(ep, ev, -1, 0));
	SHOW(epoll_wait(ep, ev, 0x7fffffff, 0));
	SHOW(epoll_wait(ep, ev, 1, 0));
	SHOW(epoll_pwait(ep, ev, 0, 0, NULL));
	SHOW(epoll_pwait(ep, ev, 1, 0, NULL));
	SHOW(epoll_pwait2(ep, ev, 1, &t, NULL));
	t.tv_nsec = -1;
	SHOW(epoll_pwait2(ep, ev, 1, &t, NULL));
	t.tv_nsec = 1000000000;
	SHOW(epoll_pwait2(ep, ev, 1, &t, NULL));
	t = (struct timespec){ -1, 0 };
	SHOW(epoll_pwait2(ep, ev, 1, &t, NULL));
	t = (struct timespec){ 0, 1 };
	SHOW(epoll_pwait2(ep, ev, 1, &t, NULL));
	EACH_BAD_POINTER(p)
	{
		TELL(epoll_wait(ep, p->at, 1, 0), "epoll_wait(%s)", p->name);
		TELL(epoll_pwait(ep, p->at, 2, 0, NULL), "epoll_pwait(%s)", p->name);
		TELL(epoll_pwait2(ep, p->at, 2, &(struct timespec){ 0 }, NULL), "epoll_pwait2(%s)",
		     p->name);
		if (p->at && strcmp(p->name, "read only")) {
			TELL(epoll_pwait2(ep, ev, 2, p->at, NULL), "epoll_pwait2(time %s)",
			     p->name);
			TELL(epoll_pwait(ep, ev, 2, 0, p->at), "epoll_pwait(mask %s)", p->name);
		}
	}
}

CASE(epoll_wait_arguments)
{
	int ep = epoll_create1(0), udp = socket(AF_INET, SOCK_DGRAM, 0), pipes[2];

	MUST(!pipe(pipes));
	wait_arguments(-1, "no number");
	wait_arguments(4711, "a number of nothing");
	wait_arguments(udp, "a socket");
	wait_arguments(pipes[0], "a pipe");
	wait_arguments(ep, "without members");
	MUST(!add(ep, pipes[0], EPOLLIN, 1));
	wait_arguments(ep, "a quiet pipe");
	MUST(!add(ep, udp, EPOLLIN, 2));
	wait_arguments(ep, "a quiet pipe and a quiet socket");
	MUST(!epoll_ctl(ep, EPOLL_CTL_MOD, udp, &(struct epoll_event){ .events = EPOLLOUT }));
	wait_arguments(ep, "a quiet pipe and a ready socket");
	MUST(!epoll_ctl(ep, EPOLL_CTL_DEL, pipes[0], NULL));
	wait_arguments(ep, "a ready socket");
}

/* Edges, and what makes a new one. */
CASE(epoll_edges)
{
	int ep = epoll_create1(0), fd[2], udp[2];
	char buf[8];

	stream_pair(fd);
	datagram_pair(udp);
	MUST(!add(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1));
	MUST(!add(ep, udp[0], EPOLLIN | EPOLLOUT | EPOLLET, 2));
	wait_and_show(ep, 8, "both are new");
	wait_and_show(ep, 8, "nothing new");
	MUST(send(fd[1], "ab", 2, 0) == 2);
	await(fd[0], POLLIN);
	wait_and_show(ep, 8, "data");
	wait_and_show(ep, 8, "the same data");
	MUST(send(fd[1], "cd", 2, 0) == 2);
	await(fd[0], POLLIN);
	wait_and_show(ep, 8, "more data");
	MUST(recv(fd[0], buf, 1, 0) == 1);
	wait_and_show(ep, 8, "less data");
	MUST(send(udp[1], "a", 1, 0) == 1);
	MUST(send(udp[1], "b", 1, 0) == 1);
	await(udp[0], POLLIN);
	wait_and_show(ep, 8, "two datagrams");
	MUST(recv(udp[0], buf, 8, 0) == 1);
	wait_and_show(ep, 8, "one datagram");
	MUST(!epoll_ctl(ep, EPOLL_CTL_MOD, udp[0],
			&(struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.u64 = 3 }));
	wait_and_show(ep, 8, "changed");
	shutdown(fd[1], SHUT_WR);
	await(fd[0], POLLRDHUP);
	wait_and_show(ep, 8, "shut by the peer");
	wait_and_show(ep, 8, "shut by the peer, told");
	shutdown(fd[0], SHUT_WR);
	await(fd[0], POLLHUP);
	wait_and_show(ep, 8, "shut by both");
}

CASE(epoll_once)
{
	int ep = epoll_create1(0), udp[2], pipes[2];
	char buf[8];

	MUST(!pipe(pipes));
	datagram_pair(udp);
	MUST(!add(ep, udp[0], EPOLLIN | EPOLLONESHOT, 1));
	MUST(!add(ep, pipes[0], EPOLLIN | EPOLLONESHOT, 2));
	for (int i = 0; i < 2; i++) {
		MUST(send(udp[1], "a", 1, 0) == 1);
		MUST(write(pipes[1], "a", 1) == 1);
		await(udp[0], POLLIN);
		wait_and_show(ep, 8, "once");
		wait_and_show(ep, 8, "no more");
		MUST(recv(udp[0], buf, 8, 0) == 1);
		MUST(read(pipes[0], buf, 1) == 1);
	}
	MUST(send(udp[1], "a", 1, 0) == 1);
	await(udp[0], POLLIN);
	wait_and_show(ep, 8, "disarmed");
	MUST(!epoll_ctl(ep, EPOLL_CTL_MOD, udp[0],
			&(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 4 }));
	wait_and_show(ep, 8, "armed again");
	wait_and_show(ep, 8, "disarmed again");
}

/* Duplicates and closing: a member is what was open, not its number. */
CASE(epoll_members_go)
{
	int ep = epoll_create1(0), fd[2], copy, pipes[2];

	MUST(!pipe(pipes));
	datagram_pair(fd);
	MUST(!add(ep, fd[0], EPOLLOUT, 1));
	copy = dup(fd[0]);
	SHOW(add(ep, copy, EPOLLOUT, 2));
	wait_and_show(ep, 8, "two numbers");
	close(fd[0]);
	wait_and_show(ep, 8, "one of them is closed");
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	SHOW(dup2(copy, fd[0]));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, copy, NULL));
	wait_and_show(ep, 8, "one is taken out");
	close(copy);
	close(fd[0]);
	wait_and_show(ep, 8, "all are closed");
	MUST(!add(ep, fd[1], EPOLLOUT, 5));
	MUST(dup2(pipes[0], fd[1]) == fd[1]);
	wait_and_show(ep, 8, "a pipe took its number");
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, fd[1], NULL));
	SHOW(add(ep, fd[1], EPOLLIN, 6));
	MUST(write(pipes[1], "x", 1) == 1);
	wait_and_show(ep, 8, "the pipe");
}

CASE(epoll_nests)
{
	int outer = epoll_create1(0), middle = epoll_create1(0), inner = epoll_create1(0);
	int udp[2], event = eventfd(0, 0);
	char buf[8];

	datagram_pair(udp);
	SHOW(add(outer, middle, EPOLLIN, 1));
	SHOW(add(middle, inner, EPOLLIN, 2));
	SHOW(add(inner, outer, EPOLLIN, 3));
	SHOW(add(inner, inner, EPOLLIN, 3));
	SHOW(add(inner, udp[0], EPOLLIN, 4));
	wait_and_show(outer, 8, "nothing");
	MUST(send(udp[1], "a", 1, 0) == 1);
	await(udp[0], POLLIN);
	wait_and_show(outer, 8, "a datagram at the bottom");
	wait_and_show(middle, 8, "a datagram at the bottom");
	wait_and_show(inner, 8, "a datagram at the bottom");
	MUST(recv(udp[0], buf, 8, 0) == 1);
	wait_and_show(outer, 8, "nothing again");
	SHOW(add(inner, event, EPOLLIN, 5));
	MUST(!eventfd_write(event, 1));
	wait_and_show(outer, 8, "an event at the bottom");
	MUST(send(udp[1], "a", 1, 0) == 1);
	await(udp[0], POLLIN);
	wait_and_show(outer, 8, "both at the bottom");
	wait_and_show(inner, 8, "both at the bottom");
	wait_and_show(inner, 1, "room for one");
	close(inner);
	wait_and_show(outer, 8, "the bottom is gone");
}

static long epoll_one(struct attempt *a)
{
	struct epoll_event ev = { 0 };
	int n = epoll_wait(a->fd, &ev, 1, a->data ? -1 : 20000);

	if (n == 1)
		printf("member %d: %x\n", (int)ev.data.u64, ev.events);
	return n;
}

CASE(epoll_wakes)
{
	int ep = epoll_create1(0), fd[2], udp[2], event = eventfd(0, 0), late[2];
	struct attempt a = { .call = epoll_one, .fd = ep };
	char buf[8];

	stream_pair(fd);
	datagram_pair(udp);
	datagram_pair(late);
	WAITS(&a, "epoll_wait(nothing yet)", MUST(!add(ep, udp[0], EPOLLOUT, 1)));
	MUST(!epoll_ctl(ep, EPOLL_CTL_MOD, udp[0],
			&(struct epoll_event){ .events = EPOLLIN, .data.u64 = 1 }));
	WAITS(&a, "epoll_wait(a socket)", send(udp[1], "a", 1, 0));
	MUST(recv(udp[0], buf, 8, 0) == 1);
	MUST(!add(ep, event, EPOLLIN, 2));
	WAITS(&a, "epoll_wait(a socket and an event)", eventfd_write(event, 1));
	eventfd_read(event, &(eventfd_t){ 0 });
	a.data = buf;
	WAITS(&a, "epoll_wait(a socket and an event)", send(udp[1], "a", 1, 0));
	MUST(recv(udp[0], buf, 8, 0) == 1);
	MUST(send(late[1], "a", 1, 0) == 1);
	WAITS(&a, "epoll_wait(added while it waits)", MUST(!add(ep, late[0], EPOLLIN, 3)));
	close(late[0]);
	MUST(!add(ep, fd[0], EPOLLIN, 4));
	WAITS(&a, "epoll_wait(the end of a stream)", close(fd[1]));
	MUST(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	WAITS(&a, "epoll_wait(changed while it waits)",
	      MUST(!epoll_ctl(ep, EPOLL_CTL_MOD, udp[0],
			      &(struct epoll_event){ .events = EPOLLOUT, .data.u64 = 5 })));
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

CASE(epoll_signals)
{
	struct sigaction act = { .sa_handler = catch, .sa_flags = SA_RESTART };
	int ep = epoll_create1(0), udp[2], event = eventfd(0, 0);
	struct epoll_event ev;
	sigset_t block, none;

	datagram_pair(udp);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!sigprocmask(SIG_BLOCK, &block, NULL));
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			MUST(!add(ep, udp[0], EPOLLIN, 1));
		if (i == 2)
			MUST(!add(ep, event, EPOLLIN, 1));
		raise(SIGUSR1);
		caught = 0;
		SHOW(epoll_pwait(ep, &ev, 1, 20000, &none));
		SHOW(caught == SIGUSR1);
		raise(SIGUSR1);
		caught = 0;
		SHOW(epoll_pwait2(ep, &ev, 1, &(struct timespec){ 20, 0 }, &none));
		SHOW(caught == SIGUSR1);
		raise(SIGUSR1);
		caught = 0;
		SHOW(epoll_pwait(ep, &ev, 1, 1, &block));
		SHOW(epoll_wait(ep, &ev, 1, 1));
		SHOW(caught);
		SHOW(epoll_pwait(ep, &ev, 1, 1, &none));
		SHOW(caught == SIGUSR1);
	}
}
