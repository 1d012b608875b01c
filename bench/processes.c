// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process trees on one stack: workers that share a listener, children that inherit
 * sockets, programs that join. The preload library does all this; libguise alone does
 * not, and cannot be measured here.
 */
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVERS 2 /* and the same number of clients */
#define HELD    10

extern char **environ;

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die(-errno, "fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* ---- a listener that two processes accept from -------------------------------- */

static __attribute__((noreturn)) void serving_process(int listening)
{
	for (;;) {
		int fd = must(net.accept(listening));

		must(net.close(fd));
	}
}

/* Makes a connection, which the other side closes. */
static void visit(const struct sockaddr_in *a)
{
	int fd = must(net.socket(AF_INET, SOCK_STREAM));
	char byte;

	must(net.connect(fd, a));
	if (must(net.read(fd, &byte, 1)))
		die(0, "a byte came where only the end was expected");
	must(net.close(fd));
}

/* Begins when the pipe is closed. Reports how many connections it made in a second. */
static __attribute__((noreturn)) void visiting_process(const struct sockaddr_in *a, int begin,
						       int told)
{
	uint64_t start, now, visits = 0;
	double rate;
	char byte;

	must(read(begin, &byte, 1));
	for (start = now_ns(); now_ns() < start + WARM_NS;)
		visit(a);
	start = now_ns();
	do {
		visit(a);
		visits++;
		now = now_ns();
	} while (now < start + RUN_NS);
	rate = (double)visits * 1e9 / (double)(now - start);
	must(write(told, &rate, sizeof(rate)));
	_exit(0);
}

double accept_rate(enum way way)
{
	int begin[2], told[2], listening;
	pid_t servers[SERVERS];
	struct sockaddr_in a;
	double rate, sum = 0;

	if (pipe(begin) || pipe(told))
		die(-errno, "pipe");
	calls_begin(way);
	listening = listener(&a);
	for (int i = 0; i < SERVERS; i++) {
		servers[i] = child();
		if (!servers[i]) {
			close(begin[1]);
			serving_process(listening);
		}
	}
	must(net.close(listening));
	for (int i = 0; i < SERVERS; i++)
		if (!child()) {
			close(begin[1]);
			visiting_process(&a, begin[0], told[1]);
		}
	close(told[1]);
	close(begin[1]);
	for (int i = 0; i < SERVERS; i++) {
		if (read(told[0], &rate, sizeof(rate)) != sizeof(rate))
			die(0, "a client ended early");
		sum += rate;
	}
	for (int i = 0; i < SERVERS; i++)
		kill(servers[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return sum;
}

/* ---- fork, and the next program ------------------------------------------------ */

static void end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die(0, "a child failed");
}

static void fork_step(int fd)
{
	pid_t pid;

	(void)fd;
	pid = child();
	if (!pid)
		_exit(0);
	end_of(pid);
}

double fork_time(enum way way)
{
	calls_begin(way);
	for (int i = 0; i < HELD; i++)
		must(net.socket(AF_INET, SOCK_STREAM));
	return ns_per_step(fork_step, -1, 1) / 1000;
}

static void join_step(int fd)
{
	char *argv[] = { "guise-bench", JOIN_FLAG, NULL };
	pid_t pid;

	(void)fd;
	must(-posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ));
	end_of(pid);
}

/* Starts this program again, which makes one socket and ends. */
double join_program(enum way way)
{
	calls_begin(way);
	must(net.socket(AF_INET, SOCK_STREAM)); /* so that this process has joined as well */
	return ns_per_step(join_step, -1, 1) / 1000;
}

void join_main(void)
{
	if (socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0)
		die(-errno, "socket");
	_exit(0);
}
