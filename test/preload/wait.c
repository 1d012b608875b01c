// SPDX-License-Identifier: GPL-2.0-only
/* poll and select, of the stack's descriptors, the host's, and both. */
#include "case.h"

#include <sys/epoll.h>
#include <sys/select.h>

static void show_poll(struct pollfd *p, nfds_t n, int ms)
{
	printf("poll %ld = %d:", (long)n, poll(p, n, ms));
	for (nfds_t i = 0; i < n; i++)
		printf(" %x", p[i].revents);
	printf("\n");
}

CASE(poll_mixed)
{
	int fd[2], udp[2], pipes[2], silent[2], ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p[300];
	char buf[10];
	double begin;

	stream_pair(fd);
	datagram_pair(udp);
	MUST(!pipe(pipes));
	MUST(!pipe(silent));
	p[0] = (struct pollfd){ .fd = fd[0], .events = POLLIN | POLLOUT };
	show_poll(p, 1, 0);
	p[0].events = POLLIN;
	show_poll(p, 1, 0);
	begin = now();
	show_poll(p, 1, 50);
	SHOW(now() - begin >= 0.05);
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[2] = (struct pollfd){ .fd = -5, .events = POLLIN };
	p[3] = (struct pollfd){ .fd = udp[0], .events = POLLIN };
	p[4] = (struct pollfd){ .fd = 4711, .events = POLLIN };
	show_poll(p, 4, 0);
	begin = now();
	show_poll(p, 4, 50);
	SHOW(now() - begin >= 0.05);
	show_poll(p, 5, -1);
	MUST(write(pipes[1], "x", 1) == 1);
	show_poll(p, 4, -1);
	MUST(send(udp[1], "y", 1, 0) == 1);
	show_poll(p, 4, -1);
	MUST(read(pipes[0], buf, 1) == 1);
	show_poll(p, 4, 1000);
	MUST(send(fd[1], "z", 1, 0) == 1);
	show_poll(p, 4, 1000);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	close(fd[1]);
	MUST(readable(fd[0], 5000));
	p[0].events = POLLIN | POLLRDHUP;
	show_poll(p, 4, 0);
	close(fd[0]);
	show_poll(p, 4, 0);
	/* An epoll among them. */
	p[0] = (struct pollfd){ .fd = ep, .events = POLLIN };
	show_poll(p, 2, 0);
	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, udp[0], &ev));
	show_poll(p, 2, 10);
	MUST(send(udp[1], "y", 1, 0) == 1);
	show_poll(p, 2, 1000);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	show_poll(p, 2, 0);
	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &ev));
	MUST(write(pipes[1], "x", 1) == 1);
	show_poll(p, 1, 1000);
	/* Many. */
	for (int i = 0; i < 300; i++)
		p[i] = (struct pollfd){ .fd = i % 2 ? udp[0] : silent[0], .events = POLLIN };
	SHOW(poll(p, 300, 0));
	MUST(send(udp[1], "y", 1, 0) == 1);
	SHOW(poll(p, 300, -1));
	SHOW(p[298].revents);
	SHOW(p[299].revents);
	SHOW(poll(NULL, 0, 1));
}

/* Another thread writes while this one sleeps in poll. */
static void poll_both(void *data)
{
	int *fd = data;
	struct pollfd p[2] = { { .fd = fd[0], .events = POLLIN },
			       { .fd = fd[1], .events = POLLIN } };

	show_poll(p, 2, 20000);
}

CASE(poll_woken)
{
	int udp[2], pipes[2];
	struct worker w;
	char buf[4];

	datagram_pair(udp);
	MUST(!pipe(pipes));
	start_and_await(&w, poll_both, (int[]){ udp[0], pipes[0] });
	MUST(send(udp[1], "x", 1, 0) == 1);
	join(&w);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	start_and_await(&w, poll_both, (int[]){ udp[0], pipes[0] });
	MUST(write(pipes[1], "x", 1) == 1);
	join(&w);
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

/* A signal that is blocked until the call lets it through, once pending
 * before the call, and once sent while it waits. */
static void with_blocked_signal(struct pollfd *p, nfds_t n)
{
	struct timespec t = { .tv_sec = 20 };
	sigset_t block, none;

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigprocmask(SIG_BLOCK, &block, NULL));
	caught = 0;
	raise(SIGUSR1);
	SHOW(caught);
	SHOW(ppoll(p, n, &t, &none));
	SHOW(caught == SIGUSR1);
	MUST(!sigprocmask(SIG_BLOCK, NULL, &block));
	SHOW(sigismember(&block, SIGUSR1));
	t.tv_sec = 0;
	SHOW(ppoll(p, n, &t, &block));
	t.tv_nsec = 2000000000;
	SHOW(ppoll(p, n, &t, &block));
}

CASE(poll_signal_mask)
{
	struct sigaction act = { .sa_handler = catch };
	int udp[2], pipes[2];
	struct pollfd p[2];

	MUST(!sigaction(SIGUSR1, &act, NULL));
	datagram_pair(udp);
	MUST(!pipe(pipes));
	p[0] = (struct pollfd){ .fd = udp[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	with_blocked_signal(p, 1);
	with_blocked_signal(p, 2);
	with_blocked_signal(p + 1, 1);
}

struct select_call {
	int n, in[4], out[4];
	const char *word;
};

static void show_select(int *in, int *out, int *except, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	fd_set set[3];
	int *ask[3] = { in, out, except }, n = 0, ret;

	for (int k = 0; k < 3; k++) {
		FD_ZERO(&set[k]);
		for (int *fd = ask[k]; fd && *fd >= 0; fd++) {
			FD_SET(*fd, &set[k]);
			n = *fd >= n ? *fd + 1 : n;
		}
	}
	ret = select(n, in ? &set[0] : NULL, out ? &set[1] : NULL, except ? &set[2] : NULL,
		     ms < 0 ? NULL : &t);
	printf("select = %d%s%s:", ret, ret < 0 ? " " : "", ret < 0 ? strerrorname_np(errno) : "");
	for (int k = 0; k < 3; k++)
		for (int *fd = ask[k]; fd && *fd >= 0; fd++)
			printf(" %d", !!FD_ISSET(*fd, &set[k]));
	if (ms >= 0)
		printf(" %s", t.tv_sec || t.tv_usec ? "time left" : "no time left");
	printf("\n");
}

CASE(select_mixed)
{
	int fd[2], pipes[2], ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN };
	struct timeval bad = { .tv_usec = -1 };
	char buf[4];
	fd_set set;

	stream_pair(fd);
	MUST(!pipe(pipes));
	show_select((int[]){ fd[0], -1 }, (int[]){ fd[0], -1 }, NULL, 1000);
	show_select((int[]){ fd[0], -1 }, NULL, (int[]){ fd[0], -1 }, 10);
	show_select((int[]){ fd[0], pipes[0], -1 }, NULL, NULL, 10);
	show_select((int[]){ fd[0], pipes[0], -1 }, NULL, NULL, 0);
	MUST(write(pipes[1], "x", 1) == 1);
	show_select((int[]){ fd[0], pipes[0], -1 }, NULL, NULL, -1);
	MUST(send(fd[1], "x", 1, 0) == 1);
	MUST(readable(fd[0], 5000));
	show_select((int[]){ fd[0], pipes[0], -1 }, (int[]){ fd[1], pipes[1], -1 },
		    (int[]){ fd[1], -1 }, -1);
	MUST(read(pipes[0], buf, 1) == 1);
	show_select((int[]){ fd[0], pipes[0], -1 }, NULL, NULL, 1000);
	MUST(recv(fd[0], buf, 1, 0) == 1);
	MUST(send(fd[1], "!", 1, MSG_OOB) == 1);
	MUST(recv(fd[0], buf, 1, MSG_OOB) == 1 || readable(fd[0], 100) || true);
	show_select((int[]){ pipes[0], -1 }, NULL, (int[]){ fd[0], pipes[0], -1 }, 5000);
	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	show_select((int[]){ ep, pipes[0], -1 }, NULL, NULL, 10);
	MUST(send(fd[1], "y", 1, 0) == 1);
	show_select((int[]){ ep, pipes[0], -1 }, NULL, NULL, 5000);
	/* Exceptions of a pipe that has hung up: poll reports that, select does not. */
	close(pipes[1]);
	show_select(NULL, NULL, (int[]){ pipes[0], fd[1], -1 }, 20);
	close(pipes[0]);
	show_select((int[]){ fd[1], pipes[0], -1 }, NULL, NULL, 1000);
	FD_ZERO(&set);
	FD_SET(fd[1], &set);
	SHOW(select(fd[1] + 1, &set, NULL, NULL, &bad));
	SHOW(select(-1, &set, NULL, NULL, NULL));
	show_select(NULL, NULL, NULL, 1);
}

static void select_both(void *data)
{
	int *fd = data;

	show_select((int[]){ fd[0], fd[1], -1 }, NULL, NULL, 20000);
}

CASE(select_woken)
{
	int udp[2], pipes[2];
	struct worker w;
	char buf[4];

	datagram_pair(udp);
	MUST(!pipe(pipes));
	start_and_await(&w, select_both, (int[]){ udp[0], pipes[0] });
	MUST(send(udp[1], "x", 1, 0) == 1);
	join(&w);
	MUST(recv(udp[0], buf, 1, 0) == 1);
	start_and_await(&w, select_both, (int[]){ udp[0], pipes[0] });
	MUST(write(pipes[1], "x", 1) == 1);
	join(&w);
}

CASE(select_signal_mask)
{
	struct sigaction act = { .sa_handler = catch };
	struct timespec t = { .tv_sec = 20 };
	sigset_t block, none;
	int udp[2], pipes[2];
	fd_set set;

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!sigprocmask(SIG_BLOCK, &block, NULL));
	datagram_pair(udp);
	MUST(!pipe(pipes));
	FD_ZERO(&set);
	FD_SET(udp[0], &set);
	FD_SET(pipes[0], &set);
	raise(SIGUSR1);
	SHOW(caught);
	SHOW(pselect(pipes[0] + 1, &set, NULL, NULL, &t, &none));
	SHOW(caught == SIGUSR1);
	SHOW(FD_ISSET(udp[0], &set));
	t = (struct timespec){ .tv_nsec = 1000000 };
	SHOW(pselect(pipes[0] + 1, &set, NULL, NULL, &t, &none));
	SHOW(t.tv_nsec);
	SHOW(FD_ISSET(udp[0], &set));
}
