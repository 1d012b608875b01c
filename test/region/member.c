// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members of one stack. Runs under guise run without the preload library (env
 * -u LD_PRELOAD) and joins by itself; so do the programs that it starts, which
 * are itself again.
 *
 *	member churn N	N members connect and wait; every other one is killed
 *			while it sleeps in the stack. Prints how their
 *			connections ended, and the places in use before and after
 *	member fair	two members make system calls as fast as they can, and a
 *			third sleeps again and again. Prints what each achieved
 */
#include "places.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20 /* until what has to happen is taken for lost */

static struct guise_stack *s;

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "member: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_a_little(void)
{
	const struct timespec t = { 0, 2000000 };

	nanosleep(&t, NULL);
}

/* Another member: this program with two words; its stdin and stdout are given. */
static pid_t start(const char *what, long number, int in, int out)
{
	char text[32];
	pid_t pid;

	snprintf(text, sizeof(text), "%ld", number);
	pid = fork();
	if (pid < 0)
		must(-errno, "fork");
	if (!pid) {
		if (in >= 0)
			dup2(in, 0);
		if (out >= 0)
			dup2(out, 1);
		execl("/proc/self/exe", "member", what, text, NULL);
		_exit(127);
	}
	return pid;
}

/* ---- churn ----------------------------------------------------------------------------- */

/* Connects, says a byte, and waits for one. */
static void client(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char c = 'r';
	int fd;

	must(fd = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_connect(s, fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	must(guise_write(s, fd, &c, 1), "write");
	must(guise_read(s, fd, &c, 1), "read");
}

static char state_of(pid_t pid)
{
	char path[64], text[512], *p = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f))
		p = strrchr(text, ')');
	if (f)
		fclose(f);
	return p ? p[2] : 0;
}

/* Looks twice: it should not be on its way. */
static void wait_until_asleep(pid_t pid)
{
	double end = now() + SECONDS;
	int seen = 0;

	while (seen < 2) {
		seen = state_of(pid) == 'S' ? seen + 1 : 0;
		if (now() > end)
			must(-ETIMEDOUT, "the client does not sleep");
		pause_a_little();
	}
}

static void churn(long n)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long closed = 0, reset = 0, left = 0, killed = 0;
	struct pollfd ready = { .events = POLLIN };
	socklen_t len = sizeof(at);
	struct places before, after;
	int listener, fd, status;
	double end;
	char c;

	must(listener = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_bind(s, listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_listen(s, listener, 8), "listen");
	must(guise_getsockname(s, listener, (struct sockaddr *)&at, &len), "getsockname");
	before = places_taken();
	for (long i = 0; i < n; i++) {
		pid_t pid = start("client", ntohs(at.sin_port), -1, -1);
		long got;

		must(fd = guise_accept4(s, listener, NULL, NULL, 0), "accept");
		must(guise_read(s, fd, &c, 1) - 1, "read");
		wait_until_asleep(pid);
		if (i % 2)
			kill(pid, SIGKILL);
		else
			must(guise_write(s, fd, &c, 1), "write");
		ready.fd = fd;
		must(guise_poll(s, &ready, 1, SECONDS * 1000) - 1, "the end is not heard of");
		got = guise_read(s, fd, &c, 1);
		closed += got == 0;
		reset += got == -ECONNRESET;
		guise_close(s, fd);
		waitpid(pid, &status, 0);
		left += WIFEXITED(status) && !WEXITSTATUS(status);
		killed += WIFSIGNALED(status);
	}
	/* The holder may take a moment to bury the last ones. */
	end = now() + SECONDS;
	do {
		pause_a_little();
		after = places_taken();
	} while ((after.slots > before.slots || after.procs > before.procs) && now() < end);
	printf("left %ld killed %ld heard %ld\n", left, killed, closed + reset);
	printf("more slots %d more processes %d\n", (int)(after.slots - before.slots),
	       (int)(after.procs - before.procs));
}

/* ---- fairness -------------------------------------------------------------------------- */

/* A byte on stdout: ready. A byte from stdin: go. Then for a second. */
static void at_once(bool sleeps)
{
	long count = 0;
	char c = 'r';
	double end;

	must(guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0), "getppid");
	if (write(1, &c, 1) != 1 || read(0, &c, 1) != 1)
		must(-EIO, "no start");
	for (end = now() + 1; now() < end; count++)
		if (sleeps)
			must(guise_nanosleep(s, 1000000), "sleep");
		else
			for (int i = 0; i < 100; i++)
				guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0);
	if (write(1, &count, sizeof(count)) != sizeof(count))
		exit(1);
}

static void fair(void)
{
	static const char *const what[] = { "spin", "spin", "sleep" };
	int go[3][2], result[3][2], status;
	long count;
	char c;

	for (int i = 0; i < 3; i++) {
		if (pipe(go[i]) || pipe(result[i]))
			must(-errno, "pipe");
		start(what[i], 0, go[i][0], result[i][1]);
		if (read(result[i][0], &c, 1) != 1)
			must(-EIO, "no member");
	}
	for (int i = 0; i < 3; i++)
		if (write(go[i][1], &c, 1) != 1)
			must(-EIO, "start");
	for (int i = 0; i < 3; i++) {
		if (read(result[i][0], &count, sizeof(count)) != sizeof(count))
			must(-EIO, "no result");
		printf("%s %ld\n", what[i], count);
	}
	while (wait(&status) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;
	int err;

	s = guise_join(-1, &err);
	if (!s)
		must(err, "join");
	if (!strcmp(what, "churn"))
		churn(number);
	else if (!strcmp(what, "client"))
		client((int)number);
	else if (!strcmp(what, "fair"))
		fair();
	else if (!strcmp(what, "spin") || !strcmp(what, "sleep"))
		at_once(what[1] == 'l');
	else {
		fprintf(stderr, "usage: member churn N | fair\n");
		return 2;
	}
	return 0;
}
