// SPDX-License-Identifier: GPL-2.0-only
/* Programs that were built with _FORTIFY_SOURCE call other names of libc. */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#include "case.h"

#include <sys/wait.h>

/* The compiler must not know how much is asked for. */
static volatile size_t five = 5;
static volatile nfds_t one = 1;
static volatile int zero;

CASE(fortified)
{
	struct timespec none = { 0 };
	struct pollfd p[2];
	char buf[8];
	int fd[2];

	stream_pair(fd);
	p[0] = (struct pollfd){ .fd = fd[1], .events = POLLIN };
	SHOW(poll(p, one, zero));
	SHOW(send(fd[0], "0123456789abcde", 15, 0));
	SHOW(poll(p, one, 5000));
	SHOW(ppoll(p, one, &none, NULL));
	SHOW(read(fd[1], buf, five));
	SHOW(recv(fd[1], buf, five, 0));
	SHOW(recvfrom(fd[1], buf, five, 0, NULL, NULL));
	SHOW(pread(fd[1], buf, five, 0));
	SHOW(pread64(fd[1], buf, five, 0));
	printf("%.5s\n", buf);
}

static void overflow(int which)
{
	int fd[2], status;
	struct pollfd p[2];
	char buf[8];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDERR_FILENO);
		stream_pair(fd);
		five = 9;
		one = 3;
		if (which == 0)
			MUST(read(fd[0], buf, five));
		else if (which == 1)
			MUST(recv(fd[0], buf, five, 0));
		else
			MUST(poll(p, one, zero));
		exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	printf("%d: %s\n", which, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "went on");
}

CASE(fortified_overflow)
{
	for (int i = 0; i < 3; i++)
		overflow(i);
}
