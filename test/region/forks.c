// SPDX-License-Identifier: GPL-2.0-only
/*
 * Children that come and go on one stack. Runs under guise run.
 *
 *	forks N		N children, one after the other, each of which makes a system
 *			call of the stack on a socket of its parent; every tenth
 *			executes a program that has the socket for its stdin, and
 *			every tenth is killed before it does anything.
 *			Prints how many ended as they should, and how many places of
 *			the region are taken more than before (0 0 in the end)
 */
#include "places.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20 /* until the dead are buried */

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static int child(int fd, int i)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	if (i % 10 == 1)
		for (;;)
			pause();
	if (i % 10 == 2) {
		dup2(fd, 0);
		execl("/bin/true", "true", NULL);
	}
	return getsockname(fd, (struct sockaddr *)&name, &len) || name.sin_family != AF_INET;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, good = 0, status;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const struct timespec moment = { 0, 2000000 };
	struct places before, after;
	time_t deadline;
	pid_t pid;

	must(fd >= 0 && n > 0, "usage: guise run -- forks N");
	before = places_taken();
	for (int i = 0; i < n; i++) {
		pid = fork();
		must(pid >= 0, "fork");
		if (!pid)
			_exit(child(fd, i));
		if (i % 10 == 1)
			kill(pid, SIGKILL);
		must(waitpid(pid, &status, 0) == pid, "waitpid");
		good += status == (i % 10 == 1 ? SIGKILL : 0);
	}
	deadline = time(NULL) + SECONDS;
	do {
		nanosleep(&moment, NULL);
		after = places_taken();
	} while ((after.slots > before.slots || after.procs > before.procs) &&
		 time(NULL) < deadline);
	printf("%d %d %d\n", good, (int)(after.slots - before.slots),
	       (int)(after.procs - before.procs));
	return 0;
}
