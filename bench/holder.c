// SPDX-License-Identifier: GPL-2.0-only
/* See holder.h, and docs/plan.md for the three descriptors. */
#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 10000
#define STOP_MS  3000

static void inherit(int fd)
{
	fcntl(fd, F_SETFD, 0);
}

static __attribute__((noreturn)) void become(const char *program, int plan, int ticket, int status,
					     const int *fds, int n)
{
	char number[3][16];

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(number[0], sizeof(number[0]), "%d", plan);
	snprintf(number[1], sizeof(number[1]), "%d", ticket);
	snprintf(number[2], sizeof(number[2]), "%d", status);
	inherit(plan);
	inherit(ticket);
	inherit(status);
	for (int i = 0; i < n; i++)
		inherit(fds[i]);
	execl(program, program, "--plan", number[0], "--ticket", number[1], "--status", number[2],
	      (char *)NULL);
	dprintf(status, "error 0: cannot execute %s: %s\n", program, strerror(errno));
	_exit(127);
}

/* Reads the first line of the status: "ready", or what has failed. */
static bool ready(struct holder *h, char *why, size_t size)
{
	struct pollfd p = { .fd = h->status, .events = POLLIN };
	char line[600];
	size_t have = 0;

	while (have < sizeof(line) - 1) {
		ssize_t n = poll(&p, 1, START_MS);

		if (n <= 0) {
			snprintf(why, size, "the holder is not ready after %d s", START_MS / 1000);
			return false;
		}
		n = read(h->status, line + have, 1);
		if (n <= 0) {
			snprintf(why, size, "the holder ended while it started");
			return false;
		}
		if (line[have] == '\n')
			break;
		have++;
	}
	line[have] = '\0';
	if (!strcmp(line, "ready"))
		return true;
	snprintf(why, size, "the holder: %s", line);
	return false;
}

bool holder_start(struct holder *h, const char *program, const char *plan, const int *fds, int n,
		  char *why, size_t size)
{
	int plans[2] = { -1, -1 }, tickets[2] = { -1, -1 }, states[2] = { -1, -1 };

	if (pipe2(plans, O_CLOEXEC) || pipe2(states, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, tickets)) {
		snprintf(why, size, "no descriptors for the holder: %s", strerror(errno));
		return false;
	}
	h->pid = fork();
	if (!h->pid)
		become(program, plans[0], tickets[1], states[1], fds, n);
	close(plans[0]);
	close(tickets[1]);
	close(states[1]);
	h->ticket = tickets[0];
	h->status = states[0];
	if (h->pid < 0) {
		snprintf(why, size, "fork: %s", strerror(errno));
		close(plans[1]);
		holder_stop(h);
		return false;
	}
	/* The plan fits into the pipe, so this does not block. */
	if (write(plans[1], plan, strlen(plan)) < 0)
		snprintf(why, size, "the plan: %s", strerror(errno));
	close(plans[1]);
	if (ready(h, why, size))
		return true;
	holder_stop(h);
	return false;
}

void holder_stop(struct holder *h)
{
	struct pollfd p = { .fd = h->status, .events = POLLIN };
	char text[256];

	close(h->ticket);
	if (h->pid < 0) {
		close(h->status);
		return;
	}
	/* The status ends when the holder ends. */
	while (poll(&p, 1, STOP_MS) > 0 && read(h->status, text, sizeof(text)) > 0)
		;
	close(h->status);
	if (!waitpid(h->pid, NULL, WNOHANG)) {
		kill(h->pid, SIGTERM);
		for (int i = 0; i < 200 && !waitpid(h->pid, NULL, WNOHANG); i++) {
			poll(NULL, 0, 10);
			if (i == 100)
				kill(h->pid, SIGKILL);
		}
	}
}
