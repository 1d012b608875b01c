// SPDX-License-Identifier: GPL-2.0-only
/* Calls that end a process whose other threads are busy. */
#include "case.h"

#include <sys/wait.h>

static void *busy(void *arg)
{
	int *fd = arg;
	char buf[4096] = { 0 };

	for (;;) {
		send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);
		recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT);
	}
	return NULL;
}

static void end(int which)
{
	int status, fd[2];
	pthread_t thread;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		stream_pair(fd);
		for (int i = 0; i < 3; i++)
			MUST(!pthread_create(&thread, NULL, busy, fd));
		usleep(2000);
		switch (which) {
		case 0:
			_exit(3);
		case 1:
			_Exit(4);
		case 2:
			quick_exit(5);
		case 3:
			syscall(SYS_exit_group, 6);
			break;
		case 4:
			exit(7);
		case 5:
			abort();
		default:
			execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
		}
	}
	MUST(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status))
		printf("%d: status %d\n", which, WEXITSTATUS(status));
	else
		printf("%d: %s\n", which, strsignal(WTERMSIG(status)));
}

/* The sockets of the process that watches are there afterwards. */
CASE(ends_with_threads)
{
	char buf[1];
	int fd[2];

	stream_pair(fd);
	for (int i = 0; i < 14; i++)
		end(i % 7);
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, 0));
}
