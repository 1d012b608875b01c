// SPDX-License-Identifier: GPL-2.0-only
/* epoll, with members of the stack, of the host, and other epolls. */
#include "case.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static char buf[16];

static void add(int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

static int by_fd(const void *a, const void *b)
{
	return ((const struct epoll_event *)a)->data.fd - ((const struct epoll_event *)b)->data.fd;
}

/* The events of one call, in the order of their descriptors. */
static void show_wait(int ep, int max, int ms)
{
	struct epoll_event ev[64];
	int n = epoll_wait(ep, ev, max, ms), at;
	char line[500];

	at = sprintf(line, "epoll_wait %d = %d%s%s:", max, n, n < 0 ? " " : "",
		     n < 0 ? strerrorname_np(errno) : "");
	if (n > 0)
		qsort(ev, (size_t)n, sizeof(*ev), by_fd);
	for (int i = 0; i < n; i++)
		at += sprintf(line + at, " %d:%x", ev[i].data.fd, ev[i].events);
	puts(line); /* whole: there are threads */
}

CASE(epoll_mixed)
{
	int ep, udp[2], pipes[2], null = open("/dev/null", O_RDWR);
	struct epoll_event ev = { .events = EPOLLIN };
	double begin;

	datagram_pair(udp);
	MUST(!pipe(pipes));
	SHOW(epoll_create(0));
	SHOW(ep = epoll_create1(EPOLL_CLOEXEC));
	SHOW(fcntl(ep, F_GETFD));
	show_wait(ep, 8, 0);
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, udp[0], NULL));
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], &ev));
	add(ep, udp[0], EPOLLIN);
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, udp[0], &ev));
	show_wait(ep, 8, 0);
	begin = now();
	show_wait(ep, 8, 50);
	SHOW(now() - begin >= 0.05);
	MUST(send(udp[1], "1", 1, 0) == 1);
	show_wait(ep, 8, -1);
	add(ep, pipes[0], EPOLLIN);
	show_wait(ep, 8, -1);
	MUST(write(pipes[1], "2", 1) == 1);
	show_wait(ep, 8, -1);
	SHOW(epoll_wait(ep, &ev, 1, -1));
	MUST(recv(udp[0], buf, 1, 0) == 1);
	show_wait(ep, 8, -1);
	MUST(read(pipes[0], buf, 1) == 1);
	begin = now();
	show_wait(ep, 8, 50);
	SHOW(now() - begin >= 0.05);
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, null, &ev));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, 4711, &ev));
	SHOW(epoll_ctl(4711, EPOLL_CTL_ADD, udp[0], &ev));
	SHOW(epoll_ctl(null, EPOLL_CTL_ADD, udp[0], &ev));
	SHOW(epoll_ctl(udp[1], EPOLL_CTL_ADD, udp[0], &ev));
	SHOW(epoll_ctl(ep, 77, udp[0], &ev));
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], (struct epoll_event *)8));
	SHOW(epoll_wait(ep, &ev, 0, 0));
	SHOW(epoll_wait(ep, (struct epoll_event *)8, 1, 0));
	SHOW(epoll_wait(udp[0], &ev, 1, 0));
	SHOW(epoll_wait(null, &ev, 1, 0));
	/* Edges, once, and shots. */
	ev = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.fd = udp[0] };
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], &ev));
	MUST(send(udp[1], "3", 1, 0) == 1);
	show_wait(ep, 8, 1000);
	show_wait(ep, 8, 0);
	ev.events = EPOLLOUT | EPOLLONESHOT;
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], &ev));
	show_wait(ep, 8, 1000);
	show_wait(ep, 8, 0);
	/* A descriptor that is closed is no member any more. */
	ev.events = EPOLLIN;
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], &ev));
	SHOW(dup(udp[0]));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, udp[0], NULL));
	add(ep, udp[0], EPOLLIN);
	SHOW(close(udp[0]));
	show_wait(ep, 8, 0);
	SHOW(close(9));
	show_wait(ep, 8, 0);
	SHOW(close(ep));
	show_wait(ep, 8, 0);
	SHOW(open("/dev/null", O_RDONLY) == ep || true);
}

/* Events of both sides must get through, however full one of them is. */
CASE(epoll_fair)
{
	int ep = epoll_create1(0), udp[6], pipes[6], seen_udp = 0, seen_pipe = 0;
	struct epoll_event ev[2];

	for (int i = 0; i < 6; i += 2) {
		datagram_pair(udp + i);
		MUST(!pipe(pipes + i));
		add(ep, udp[i], EPOLLIN);
		add(ep, pipes[i], EPOLLIN);
		MUST(send(udp[i + 1], "x", 1, 0) == 1);
		MUST(write(pipes[i + 1], "x", 1) == 1);
	}
	for (int round = 0; round < 12; round++) {
		int max = round % 2 + 1, n = epoll_wait(ep, ev, max, 1000);

		MUST(n == max);
		for (int i = 0; i < n; i++)
			for (int k = 0; k < 6; k += 2) {
				seen_udp |= (ev[i].data.fd == udp[k]) << k;
				seen_pipe |= (ev[i].data.fd == pipes[k]) << k;
			}
	}
	SHOW(seen_udp);
	SHOW(seen_pipe);
}

CASE(epoll_nested)
{
	int outer = epoll_create1(0), inner = epoll_create1(0), udp[2], pipes[2], loop;
	struct epoll_event ev = { .events = EPOLLIN };

	datagram_pair(udp);
	MUST(!pipe(pipes));
	add(outer, inner, EPOLLIN);
	show_wait(outer, 8, 0);
	add(inner, udp[0], EPOLLIN);
	show_wait(outer, 8, 0);
	MUST(send(udp[1], "x", 1, 0) == 1);
	show_wait(outer, 8, 1000);
	show_wait(inner, 8, 1000);
	add(inner, pipes[0], EPOLLIN);
	MUST(write(pipes[1], "x", 1) == 1);
	show_wait(outer, 8, 1000);
	show_wait(inner, 8, 1000);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	show_wait(outer, 8, 1000);
	show_wait(inner, 8, 1000);
	MUST(read(pipes[0], buf, 1) == 1);
	show_wait(outer, 8, 10);
	SHOW(epoll_ctl(outer, EPOLL_CTL_ADD, outer, &ev));
	SHOW(epoll_ctl(inner, EPOLL_CTL_ADD, outer, &ev));
	SHOW(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &ev));
	ev.events = 0;
	SHOW(epoll_ctl(outer, EPOLL_CTL_MOD, inner, &ev));
	MUST(send(udp[1], "x", 1, 0) == 1);
	show_wait(outer, 8, 10);
	SHOW(epoll_ctl(outer, EPOLL_CTL_DEL, inner, NULL));
	SHOW(epoll_ctl(outer, EPOLL_CTL_DEL, inner, NULL));
	/* Two numbers of one epoll. */
	loop = dup(inner);
	show_wait(loop, 8, 1000);
	MUST(!epoll_ctl(loop, EPOLL_CTL_DEL, udp[0], NULL));
	show_wait(inner, 8, 10);
	MUST(write(pipes[1], "x", 1) == 1);
	show_wait(loop, 8, 1000);
	close(inner);
	show_wait(loop, 8, 1000);
}

struct waiter {
	int ep, ms;
};

static void wait_once(void *data)
{
	struct waiter *w = data;

	show_wait(w->ep, 8, w->ms);
}

/* A thread already waits in one half when the other gets its first member. */
CASE(epoll_first_member)
{
	int udp[2], bell = eventfd(0, 0), ep;
	struct worker a, b;
	struct waiter w = { .ms = 20000 };
	struct epoll_event ev;
	uint64_t one = 1;

	datagram_pair(udp);
	/* Waiting for the host alone, when the stack comes in. */
	ep = w.ep = epoll_create1(0);
	add(ep, bell, EPOLLIN);
	start_and_await(&a, wait_once, &w);
	add(ep, udp[0], EPOLLIN | EPOLLET);
	MUST(send(udp[1], "x", 1, 0) == 1);
	join(&a);
	show_wait(ep, 8, 10);
	/* Two of them, and it is the host that wakes both. */
	start_and_await(&a, wait_once, &w);
	start_and_await(&b, wait_once, &w);
	MUST(write(bell, &one, sizeof(one)) == sizeof(one));
	join(&a);
	join(&b);
	close(ep);
	/* An empty one. */
	ep = w.ep = epoll_create1(0);
	start_and_await(&a, wait_once, &w);
	start_and_await(&b, wait_once, &w);
	add(ep, udp[0], EPOLLIN);
	join(&a);
	join(&b);
	close(ep);
	/* Waiting for the stack alone, when the host comes in. */
	ep = w.ep = epoll_create1(0);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	add(ep, udp[0], EPOLLIN);
	start_and_await(&a, wait_once, &w);
	start_and_await(&b, wait_once, &w);
	add(ep, bell, EPOLLIN);
	join(&a);
	join(&b);
	SHOW(epoll_wait(ep, &ev, 1, 10));
	MUST(read(bell, &one, sizeof(one)) == sizeof(one));
	show_wait(ep, 8, 10);
}

CASE(epoll_woken)
{
	int udp[2], pipes[2];
	struct waiter w = { .ep = epoll_create1(0), .ms = 20000 };
	struct worker a;

	datagram_pair(udp);
	MUST(!pipe(pipes));
	add(w.ep, pipes[0], EPOLLIN);
	add(w.ep, udp[0], EPOLLIN);
	start_and_await(&a, wait_once, &w);
	MUST(send(udp[1], "x", 1, 0) == 1);
	join(&a);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	start_and_await(&a, wait_once, &w);
	MUST(write(pipes[1], "x", 1) == 1);
	join(&a);
	MUST(read(pipes[0], buf, 1) == 1);
	/* Closed by another thread, it does not wake; its other member does. */
	start_and_await(&a, wait_once, &w);
	close(udp[0]);
	MUST(write(pipes[1], "x", 1) == 1);
	join(&a);
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

static void with_blocked_signal(int ep)
{
	struct epoll_event ev[4];
	struct timespec t = { .tv_sec = 20 };
	sigset_t block, none;

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigprocmask(SIG_BLOCK, &block, NULL));
	for (int precise = 0; precise < 2; precise++) {
		caught = 0;
		raise(SIGUSR1);
		SHOW(caught);
		if (precise)
			SHOW(epoll_pwait2(ep, ev, 4, &t, &none));
		else
			SHOW(epoll_pwait(ep, ev, 4, 20000, &none));
		SHOW(caught == SIGUSR1);
	}
	t = (struct timespec){ .tv_nsec = 1000000 };
	SHOW(epoll_pwait2(ep, ev, 4, &t, NULL));
	t.tv_nsec = 2000000000;
	SHOW(epoll_pwait2(ep, ev, 4, &t, NULL));
	SHOW(epoll_pwait(ep, ev, 4, 1, &none));
}

CASE(epoll_signal_mask)
{
	struct sigaction act = { .sa_handler = catch };
	int udp[2], pipes[2], ep = epoll_create1(0);

	MUST(!sigaction(SIGUSR1, &act, NULL));
	datagram_pair(udp);
	MUST(!pipe(pipes));
	add(ep, pipes[0], EPOLLIN);
	with_blocked_signal(ep);
	add(ep, udp[0], EPOLLIN);
	with_blocked_signal(ep);
	MUST(!epoll_ctl(ep, EPOLL_CTL_DEL, pipes[0], NULL));
	with_blocked_signal(ep);
}
