// SPDX-License-Identifier: GPL-2.0-only
/* A program that traces another one of its stack. */
#include "case.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* What it sees of a child that uses sockets, and stops itself. */
static void trace(bool by_child)
{
	int status, go[2], fd[2];
	pid_t pid;
	char c;

	MUST(!pipe(go));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		stream_pair(fd); /* it is on the stack */
		if (by_child)
			MUST(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		else
			MUST(write(go[1], "g", 1) == 1);
		while (!by_child)
			pause();
		raise(SIGUSR1);
		_exit(3);
	}
	if (!by_child) {
		MUST(read(go[0], &c, 1) == 1);
		SHOW(ptrace(PTRACE_SEIZE, pid, 0, 0));
		SHOW(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	}
	MUST(waitpid(pid, &status, __WALL) == pid);
	SHOW(WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
	if (by_child)
		SHOW(ptrace(PTRACE_CONT, pid, 0, 0));
	else
		kill(pid, SIGKILL);
	MUST(waitpid(pid, &status, __WALL) == pid);
	SHOW(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	close(go[0]);
	close(go[1]);
}

/* A child that names its parent as its tracer, which that then becomes. */
static void named(void)
{
	int status, go[2], fd[2];
	pid_t pid;
	char c;

	MUST(!pipe(go));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		stream_pair(fd);
		prctl(PR_SET_PTRACER, getppid(), 0, 0, 0); /* EINVAL without Yama */
		MUST(write(go[1], "g", 1) == 1);
		for (;;)
			pause();
	}
	MUST(read(go[0], &c, 1) == 1);
	SHOW(ptrace(PTRACE_SEIZE, pid, 0, 0));
	kill(pid, SIGKILL);
	MUST(waitpid(pid, &status, __WALL) == pid);
	SHOW(WTERMSIG(status));
}

CASE(traces_a_member)
{
	named();
	trace(true);
	trace(false);
}
