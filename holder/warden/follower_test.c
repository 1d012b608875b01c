// SPDX-License-Identifier: GPL-2.0-only
/* The warden and a follower, which is this program executed anew: what it is started with, what it
 * hands over, and that it is started again. */
#include "holder/warden/follower.h"

#include "holder/control/control.h"
#include "holder/plan.h"

#include "host/message.h"
#include "host/sys.h"
#include "test/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG 3
#define WARDEN 4
#define REPORT 5
#define OPENER 6
#define SECOND 1000000 /* us */

/* What it does stands in its config; an end of a pipe tells that it is kept, or closed. */
static int follow(char **argv)
{
	char what[16] = "", opener[6];
	uint32_t slot = 7;
	int end[2], fds[9];

	if (pread(CONFIG, what, sizeof(what) - 1, 0) < 0 ||
	    pread(OPENER, opener, sizeof(opener), 0) != 6 || memcmp(opener, "opener", 6) ||
	    strcmp(argv[2], "/run/x/1.sock"))
		return 1;
	if (!strcmp(what, "hand")) {
		dprintf(REPORT, "begun\n");
		/* Noise first: too long, no such slot, too many. */
		if (pipe(end))
			return 1;
		for (int i = 0; i < 9; i++)
			fds[i] = end[1];
		guise_message_send(WARDEN, "too long", 8, fds, 1);
		guise_message_send(WARDEN, &(uint32_t){ 99 }, 4, fds, 1);
		guise_message_send(WARDEN, &slot, 4, fds, 9);
		guise_message_send(WARDEN, &slot, 4, &end[0], 1);
		guise_message_send(WARDEN, &(uint32_t){ 8 }, 4, &end[1], 1);
		close(end[0]);
		dprintf(REPORT, "handed\n");
		pause();
	}
	if (!strcmp(what, "end"))
		return 0;
	return 3;
}

static struct plan plan;
static int config, report;

static void set_config(const char *what)
{
	if (ftruncate(config, 0) || pwrite(config, what, strlen(what), 0) < 0)
		abort();
}

static bool reports(const char *line)
{
	char text[64];
	size_t n = 0;

	while (n < strlen(line)) {
		struct pollfd p = { .fd = report, .events = POLLIN };

		follower_turn();
		if (poll(&p, 1, 20000) <= 0 || read(report, text + n, 1) != 1)
			return false;
		n++;
	}
	text[n] = '\0';
	return !strcmp(text, line);
}

static pid_t child(void)
{
	pid_t pid = 0;
	char name[64], text[64] = "";
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(name, "r");
	if (f && fgets(text, sizeof(text), f))
		pid = atoi(text);
	if (f)
		fclose(f);
	return pid;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Waits until the child has ended, and tells the warden's part of it. */
static void ends(pid_t pid)
{
	int how;

	if (waitpid(pid, &how, 0) == pid)
		follower_ended(pid, how);
}

/* Takes turns until there is a child; how long that took in us. */
static long started_again(void)
{
	long us = 0;

	while (!child() && us < 20 * SECOND) {
		follower_turn();
		usleep(10000);
		us += 10000;
	}
	return us;
}

int main(int argc, char **argv)
{
	int pipe_of_report[2], before, fd[FOLLOWER_FDS];
	pid_t pid;

	if (argc == 3 && !strcmp(argv[1], "follow-uplinks"))
		return follow(argv);
	config = memfd_create("config", MFD_CLOEXEC);
	if (config < 0 || pipe2(pipe_of_report, O_CLOEXEC))
		abort();
	report = pipe_of_report[0];
	plan.follow.program = "/proc/self/exe";
	plan.follow.config = config;
	plan.follow.report = pipe_of_report[1];
	plan.follow.opener = memfd_create("opener", MFD_CLOEXEC);
	if (write(plan.follow.opener, "opener", 6) != 6)
		abort();
	plan.control = control_new(open("/dev/null", O_RDWR), "/run/x/1.sock", NULL);

	follower_turn();
	tap(!child() && follower_patience() < 0, "none runs before there is a plan");
	set_config("hand");
	follower_descriptors(&plan, fd);
	tap(fd[0] == config && fd[1] == pipe_of_report[1] && fd[2] == plan.follow.opener,
	    "the plan says its descriptors");
	/* It has a channel then, and no end of the report's pipe: as many. */
	before = open_descriptors();
	follower_begin(&plan);
	tap(!follower_patience(), "it is due at once");
	tap(reports("begun\n"), "it is started with its config, and says so");
	tap(follower_patience() < 0, "then none is due");
	tap(reports("handed\n"), "it hands over");
	for (int i = 0; i < 8; i++)
		follower_turn();
	tap(open_descriptors() == before + 2, "what is proper is kept, and nothing else");
	pid = child();
	kill(pid, SIGKILL);
	ends(pid);
	tap(open_descriptors() == before + 1 && follower_channel() < 0,
	    "it is killed, and what it has handed over is there");
	tap(follower_patience() > 0, "it is started again, later");
	set_config("fail");
	tap(started_again() > SECOND / 2, "after a pause");
	ends(child());
	set_config("end");
	tap(started_again() > SECOND, "after a longer one");
	ends(child());
	tap(follower_patience() < 0 && !child(), "one that ends well is not started again");
	follower_end();
	tap(open_descriptors() == before - 1, "what it has handed over goes with the stack");
	return tap_end();
}
