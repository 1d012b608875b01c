// SPDX-License-Identifier: GPL-2.0-only
/*
 * One run: makes what a worker needs, runs the worker, and removes everything.
 *
 * "Busy" means that all processes of the run share two processors with a loop that
 * never sleeps, both on the host and on guise.
 */
#include "benchmark.h"
#include "holder.h"
#include "paths.h"
#include "wire.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOP_SECONDS 30

struct busy {
	pid_t loop;
	cpu_set_t all;
};

static bool busy_begin(struct busy *busy, char *why, size_t size)
{
	cpu_set_t two;
	int n = 0;

	CPU_ZERO(&two);
	if (sched_getaffinity(0, sizeof(busy->all), &busy->all)) {
		snprintf(why, size, "sched_getaffinity: %s", strerror(errno));
		return false;
	}
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &busy->all)) {
			CPU_SET(i, &two);
			n++;
		}
	sched_setaffinity(0, sizeof(two), &two);
	busy->loop = fork();
	if (!busy->loop) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LOOP_SECONDS);
		for (;;)
			;
	}
	if (busy->loop > 0)
		return true;
	snprintf(why, size, "fork: %s", strerror(errno));
	sched_setaffinity(0, sizeof(busy->all), &busy->all);
	return false;
}

static void busy_end(struct busy *busy)
{
	if (busy->loop <= 0)
		return;
	kill(busy->loop, SIGKILL);
	waitpid(busy->loop, NULL, 0);
	sched_setaffinity(0, sizeof(busy->all), &busy->all);
}

/* A run on the host's stack, or in a namespace that guise, pasta or slirp4netns makes there. */
static bool on_host(const struct benchmark *b, enum way way, int netns, double *value, char *why,
		    size_t size)
{
	struct worker w;
	bool good;

	if (!worker_start(&w, b, way, -1, netns, why, size))
		return false;
	good = worker_result(&w, value, why, size);
	worker_stop(&w);
	return good;
}

static bool on_guise(const struct benchmark *b, enum way way, int tap, double *value, char *why,
		     size_t size)
{
	struct holder h = { .ticket = -1 };
	char program[4200], plan[512];
	struct worker w;
	bool good;

	if (b->plan) {
		snprintf(program, sizeof(program), "%sguise-holder", programs);
		snprintf(plan, sizeof(plan), "name bench\n");
		if (tap >= 0)
			snprintf(plan, sizeof(plan), "name bench\nlink eth0 tap fd=%d\n", tap);
		strncat(plan, b->plan, sizeof(plan) - strlen(plan) - 1);
		if (!holder_start(&h, program, plan, &tap, tap >= 0, why, size))
			return false;
	}
	good = worker_start(&w, b, way, h.ticket, -1, why, size);
	if (good) {
		good = worker_result(&w, value, why, size);
		worker_stop(&w);
	}
	if (b->plan)
		holder_stop(&h);
	return good;
}

bool measure(const struct benchmark *b, enum way way, double *value, char *why, size_t size)
{
	struct wire wire = { .near = -1, .tap = -1 };
	struct busy busy = { .loop = 0 };
	bool good = false, tap = way != WAY_HOST && !b->guest;

	if (b->paths)
		return paths_measure(b, way, value, why, size);
	if (b->busy && !busy_begin(&busy, why, size))
		return false;
	if (!b->far || wire_make(&wire, tap, b->far, why, size)) {
		if (way == WAY_HOST || b->guest)
			good = on_host(b, way, wire.near, value, why, size);
		else
			good = on_guise(b, b->api ? WAY_API : way, wire.tap, value, why, size);
		if (b->far)
			wire_remove(&wire);
	}
	busy_end(&busy);
	return good;
}
