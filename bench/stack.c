// SPDX-License-Identifier: GPL-2.0-only
/* What it costs to have a stack. The host has nothing to compare this with. */
#include "workload.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOINS 9

static struct guise_stack *create(void)
{
	struct guise_stack *s = guise_create(NULL, NULL);

	if (!s)
		die(0, "%s", guise_error());
	return s;
}

double create_time(enum way way)
{
	uint64_t start = now_ns();

	(void)way;
	create();
	return (double)(now_ns() - start) / 1e6;
}

static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		die(-errno, "/proc/self/statm");
	fclose(f);
	return (double)(pages * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double create_memory(enum way way)
{
	double before = resident();

	(void)way;
	create();
	return resident() - before;
}

/* Joins and makes the first call, for which the thread's shadow task is made. */
static double join_once(void)
{
	uint64_t start = now_ns();
	struct guise_stack *s = guise_join(-1, NULL);

	if (!s)
		die(0, "%s", guise_error());
	must(guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0));
	return (double)(now_ns() - start) / 1000;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static __attribute__((noreturn)) void joining_process(int to, int until)
{
	double value = join_once();
	char byte;

	if (write(to, &value, sizeof(value)) != sizeof(value) || read(until, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

/*
 * A process joins once, so each sample needs a process. They stay until the last has
 * joined, so that the time to bury dead members is not in the figure.
 */
double join_time(enum way way)
{
	double sample[JOINS];
	int from[2], until[2], status;

	(void)way;
	if (pipe(from) || pipe(until))
		die(-errno, "pipe");
	for (int i = 0; i < JOINS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die(-errno, "fork");
		if (!pid) {
			close(until[1]);
			joining_process(from[1], until[0]);
		}
		if (read(from[0], &sample[i], sizeof(sample[i])) != sizeof(sample[i]))
			die(0, "a joining process failed");
	}
	close(until[1]);
	while (wait(&status) > 0)
		if (status)
			die(0, "a joined process failed");
	qsort(sample, JOINS, sizeof(sample[0]), ascending);
	return sample[JOINS / 2];
}

/* A server to which no client connects. Reports when it begins to wait. */
double idle_member(enum way way)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd;

	calls_begin(way);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.bind(fd, &a));
	must(net.listen(fd));
	puts("0");
	fflush(stdout);
	must(net.accept(fd));
	die(0, "a client connected to the idle server");
}
