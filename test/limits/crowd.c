// SPDX-License-Identifier: GPL-2.0-only
/*
 * A crowd on one stack. Runs under guise run.
 *
 *	crowd HOW MOST
 *
 * HOW	fork, raw	children that have a socket of this process, by fork or by clone(2)
 *	vfork, spawn	the same, but each is a program (vfork and exec, posix_spawn) that
 *			finds the socket
 *	join		children of a process without sockets: each joins by itself
 *	threads		threads, each of which makes a call of the stack
 *
 * They are made one after the other and stay, until there are MOST or the next one
 * cannot be made. Printed is how many there are and how that ended, and how long the last
 * of the first 10, 100, 1000, ... took, in microseconds, the median of ten. Then all end,
 * and it is seen whether as many as before can come again: a tenth of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST    5000
#define SECONDS 60 /* until the places of those that have ended are free */
#define STACK   65536

static int the_socket = -1;
static int says[2]; /* a byte from one that came; it hangs up when it has ended */
static int hold[2]; /* hangs up when all are to end */
static const char *how;
static double took[MOST];
static pthread_t made[MOST];
static int n_made;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* Its errno, or 0. */
static int look(int fd)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &len))
		return errno;
	return name.sin_family == AF_INET ? 0 : ENOTSOCK;
}

/* What one of the crowd does. */
static void stay(int fd, int say, int end)
{
	char byte = (char)look(fd);

	if (write(say, &byte, 1) == 1)
		while (read(end, &byte, 1) < 0 && errno == EINTR)
			;
}

static void *thread(void *unused)
{
	stay(the_socket, says[1], hold[0]);
	return unused;
}

static void child(void)
{
	close(hold[1]);
	close(says[0]);
	if (the_socket < 0)
		the_socket = socket(AF_INET, SOCK_STREAM, 0);
	if (the_socket < 0)
		_exit(1);
	stay(the_socket, says[1], hold[0]);
	_exit(0);
}

static int execute(bool spawn)
{
	char fd[3][12], self[] = "/proc/self/exe", name[] = "crowd",
			*argv[] = { name, fd[0], fd[1], fd[2], NULL };
	volatile int err = 0;
	pid_t pid;

	sprintf(fd[0], "%d", the_socket);
	sprintf(fd[1], "%d", says[1]);
	sprintf(fd[2], "%d", hold[0]);
	if (spawn)
		return posix_spawn(&pid, self, NULL, NULL, argv, environ);
	pid = vfork();
	if (!pid) {
		execv(self, argv);
		err = errno;
		_exit(0);
	}
	if (err)
		waitpid(pid, NULL, 0);
	return pid < 0 ? errno : err;
}

/* 0, or the errno of what failed, also in the new process; EPIPE if that ended at once. */
static int make_one(void)
{
	pthread_attr_t attributes;
	pid_t pid = 0;
	char byte;
	int err = 0;
	ssize_t got;

	if (pipe(says) || fcntl(says[0], F_SETFD, FD_CLOEXEC))
		return errno;
	if (!strcmp(how, "threads")) {
		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, STACK);
		err = pthread_create(&made[n_made], &attributes, thread, NULL);
		n_made += !err;
	} else if (!strcmp(how, "vfork") || !strcmp(how, "spawn")) {
		err = execute(*how == 's');
	} else {
		pid = *how == 'r' ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
		if (!pid)
			child();
		if (pid < 0)
			err = errno;
	}
	/* A thread writes to this very descriptor. */
	if (strcmp(how, "threads"))
		close(says[1]);
	got = err ? 1 : read(says[0], &byte, 1);
	close(says[0]);
	if (!strcmp(how, "threads"))
		close(says[1]);
	if (err)
		return err;
	return got == 1 ? byte : EPIPE;
}

static int make_crowd(int most, int *err)
{
	int n = 0;

	for (*err = 0; n < most && !*err; n++) {
		double began = now();

		*err = make_one();
		took[n] = now() - began;
	}
	return *err ? n - 1 : n;
}

static void make_hold(void)
{
	if (pipe(hold) || fcntl(hold[1], F_SETFD, FD_CLOEXEC))
		abort();
}

static void end_crowd(void)
{
	close(hold[1]);
	while (n_made)
		pthread_join(made[--n_made], NULL);
	while (wait(NULL) > 0)
		;
	close(hold[0]);
	make_hold();
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int most = argc == 3 ? atoi(argv[2]) : 0, n, err, again;
	double until;

	if (argc == 4) { /* one of the crowd, which was executed */
		stay(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	if (most <= 0 || most > MOST)
		return 2;
	how = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	make_hold();
	if (strcmp(how, "join"))
		the_socket = socket(AF_INET, SOCK_STREAM, 0);
	n = make_crowd(most, &err);
	printf("came %d %s\n", n, err ? strerrorname_np(err) : "ok");
	for (int at = 10; at <= n; at *= 10) {
		qsort(took + at - 10, 10, sizeof(*took), compare);
		printf("took %d %.0f\n", at, took[at - 5]);
	}
	end_crowd();
	until = now() + SECONDS * 1e6;
	do {
		again = make_crowd((n + 9) / 10, &err);
		end_crowd();
	} while (err && now() < until);
	printf("again %d %s\n", again, err ? strerrorname_np(err) : "ok");
	return 0;
}
