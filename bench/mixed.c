// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that wait for a connection and for a descriptor of the host at the same time, as
 * servers with worker processes do: PostgreSQL, node's cluster, gunicorn. Pairs of processes
 * make round trips of one byte, each pair over a connection of its own. Both sides wait in
 * epoll_wait(2) for the connection and for a pipe, from which nothing ever comes. All pairs
 * begin and end at the same time; the figure is the sum of all.
 */
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS 8

static void add(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die(-errno, "epoll_ctl");
}

/* An epoll of the connection and of a pipe to which nothing is written. */
static int watch(int fd)
{
	int silent[2], ep = epoll_create1(0);

	if (ep < 0 || pipe(silent))
		die(-errno, "no epoll or pipe");
	add(ep, silent[0]);
	add(ep, fd);
	return ep;
}

/* Waits for a byte and reads it; false at the end of the connection. */
static bool hear(int ep, int fd)
{
	struct epoll_event ev[EVENTS];
	char byte;

	if (epoll_wait(ep, ev, EVENTS, -1) != 1 || ev[0].data.fd != fd)
		die(-errno, "epoll_wait");
	return must(net.read(fd, &byte, 1)) == 1;
}

static __attribute__((noreturn)) void serve(int listening)
{
	int fd = must(net.accept(listening)), ep;

	tune(fd);
	ep = watch(fd);
	while (hear(ep, fd))
		must(net.write(fd, "x", 1));
	_exit(0);
}

/* Begins when the pipe is closed. Reports how many round trips it made in a second. */
static __attribute__((noreturn)) void ask(const struct sockaddr_in *a, int begin, int told)
{
	int fd = must(net.socket(AF_INET, SOCK_STREAM)), ep;
	uint64_t start, now, end, trips = 0;
	double rate;
	char byte;

	must(net.connect(fd, a));
	tune(fd);
	ep = watch(fd);
	must(read(begin, &byte, 1));
	start = now_ns();
	end = start + WARM_NS;
	for (int warm = 1; warm >= 0; warm--) {
		do {
			must(net.write(fd, "x", 1));
			if (!hear(ep, fd))
				die(0, "the connection ended early");
			trips++;
			now = now_ns();
		} while (now < end);
		if (warm) {
			start = now;
			end = now + 2 * RUN_NS;
			trips = 0;
		}
	}
	rate = (double)trips * 1e6 / (double)(now - start);
	must(write(told, &rate, sizeof(rate)));
	_exit(0);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die(-errno, "fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static double pairs(enum way way, int n)
{
	int begin[2], told[2];
	double rate, sum = 0;

	if (pipe(begin) || pipe(told))
		die(-errno, "pipe");
	calls_begin(way);
	for (int i = 0; i < n; i++) {
		struct sockaddr_in a;
		int listening = listener(&a);

		if (!child()) {
			close(begin[1]);
			serve(listening);
		}
		must(net.close(listening));
		if (!child()) {
			close(begin[1]);
			ask(&a, begin[0], told[1]);
		}
	}
	close(told[1]);
	close(begin[1]);
	for (int i = 0; i < n; i++) {
		if (read(told[0], &rate, sizeof(rate)) != sizeof(rate))
			die(0, "a client ended early");
		sum += rate;
	}
	while (wait(NULL) > 0)
		;
	return sum;
}

double mixed_rr_1(enum way way)
{
	return pairs(way, 1);
}

double mixed_rr_4(enum way way)
{
	return pairs(way, 4);
}

double mixed_rr_16(enum way way)
{
	return pairs(way, 16);
}

double mixed_rr_64(enum way way)
{
	return pairs(way, 64);
}
