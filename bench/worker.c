// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each run is a process of its own: this program again, with the name of a workload, on
 * the host's stack or on a stack that was made for it. It prints one number. So one run
 * leaves nothing behind for the next, and a run that does not end in time is killed.
 */
#include "benchmark.h"
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_MS 20000
#define END_MS    3000

static const char *const ways[] = {
	[WAY_HOST] = "host", [WAY_PRELOAD] = "preload", [WAY_API] = "api",
	[WAY_TUN] = "tun",   [WAY_PASTA] = "pasta",     [WAY_SLIRP] = "slirp4netns",
};

static void set_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char value[8192];

	snprintf(value, sizeof(value), "%slibguise-preload.so%s%s", programs, old ? ":" : "",
		 old ? old : "");
	setenv("LD_PRELOAD", value, 1);
}

static __attribute__((noreturn)) void become(const struct benchmark *b, enum way way, int output,
					     int ticket, int netns)
{
	const char *const argv[] = { "guise-bench", "--worker", b->name, ways[way], NULL };
	char number[16], self[4200];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (netns >= 0 && setns(netns, CLONE_NEWNET))
		die(-errno, "setns");
	if (ticket >= 0) {
		fcntl(ticket, F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ticket);
		setenv("GUISE_STACK", number, 1);
	}
	if (way == WAY_PRELOAD)
		set_preload();
	dup2(output, STDOUT_FILENO);
	if (b->guest && way != WAY_HOST) {
		setpgid(0, 0);
		snprintf(self, sizeof(self), "%sguise-bench", programs);
		guest_become(way, self, argv);
	}
	execv("/proc/self/exe", (char *const *)argv);
	die(-errno, "cannot start itself again");
}

bool worker_start(struct worker *w, const struct benchmark *b, enum way way, int ticket, int netns,
		  char *why, size_t size)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC)) {
		snprintf(why, size, "pipe: %s", strerror(errno));
		return false;
	}
	w->group = b->guest && way != WAY_HOST;
	w->pid = fork();
	if (!w->pid)
		become(b, way, p[1], ticket, netns);
	close(p[1]);
	w->output = p[0];
	if (w->pid > 0)
		return true;
	close(p[0]);
	snprintf(why, size, "fork: %s", strerror(errno));
	return false;
}

bool worker_result(struct worker *w, double *value, char *why, size_t size)
{
	struct pollfd p = { .fd = w->output, .events = POLLIN };
	char line[64];
	ssize_t n;

	if (poll(&p, 1, RESULT_MS) <= 0) {
		snprintf(why, size, "no result after %d s", RESULT_MS / 1000);
		return false;
	}
	n = read(w->output, line, sizeof(line) - 1);
	if (n <= 0) {
		snprintf(why, size, "the run failed: its message is above");
		return false;
	}
	line[n] = '\0';
	*value = strtod(line, NULL);
	/* Its connections close in good order if the processes that it started may end. */
	while (w->group && poll(&p, 1, END_MS) > 0 && read(w->output, line, sizeof(line)) > 0)
		;
	return true;
}

void worker_stop(struct worker *w)
{
	kill(w->group ? -w->pid : w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	close(w->output);
}

void worker_main(const struct benchmark *b, const char *way)
{
	char name[16];

	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(way, ways[i])) {
			snprintf(name, sizeof(name), "bench-%s", way);
			prctl(PR_SET_NAME, name); /* for profilers */
			printf("%.9g\n", b->run(i));
			fflush(stdout);
			_exit(0);
		}
	die(0, "--worker is only for runs that this program starts itself");
}
