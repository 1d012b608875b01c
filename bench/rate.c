// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several processes make calls on one stack at the same time. All of them need its one
 * virtual CPU; on the host they share nothing. The figure is the sum of all processes.
 * By comparison with that of one process it shows what sharing costs.
 */
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 16

/* Joins and reports that, begins when the pipe is closed, and reports its calls in a second. */
static __attribute__((noreturn)) void call(enum way way, int begin, int told)
{
	uint64_t start, now, end, calls = 0;
	double rate;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calls_begin(way);
	must(net.getppid());
	rate = 0;
	must(write(told, &rate, sizeof(rate)));
	must(read(begin, &byte, 1));
	start = now_ns();
	end = start + RUN_NS;
	do {
		for (int i = 0; i < 100; i++)
			must(net.getppid());
		calls += 100;
		now = now_ns();
	} while (now < end);
	rate = (double)calls * 1e3 / (double)(now - start);
	must(write(told, &rate, sizeof(rate)));
	_exit(0);
}

static double hear(int fd)
{
	double rate;

	if (read(fd, &rate, sizeof(rate)) != sizeof(rate))
		die(-errno, "a process that calls ended early");
	return rate;
}

static double rate_of(enum way way, int processes)
{
	int begin[2], told[PROCESSES_MAX][2], i;
	double sum = 0;

	if (pipe(begin))
		die(-errno, "pipe");
	for (i = 0; i < processes; i++) {
		pid_t pid;

		if (pipe(told[i]))
			die(-errno, "pipe");
		pid = fork();
		if (pid < 0)
			die(-errno, "fork");
		if (!pid) {
			close(begin[1]);
			call(way, begin[0], told[i][1]);
		}
		close(told[i][1]);
	}
	for (i = 0; i < processes; i++)
		hear(told[i][0]);
	close(begin[1]);
	for (i = 0; i < processes; i++)
		sum += hear(told[i][0]);
	while (wait(NULL) > 0)
		;
	return sum;
}

double call_rate_1(enum way way)
{
	return rate_of(way, 1);
}

double call_rate_2(enum way way)
{
	return rate_of(way, 2);
}

double call_rate_4(enum way way)
{
	return rate_of(way, 4);
}

double call_rate_16(enum way way)
{
	return rate_of(way, PROCESSES_MAX);
}
