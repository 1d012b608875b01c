// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fault of an init: of pid 1 of a PID namespace that this program makes. Prints whether it is
 * traced, as a member of a stack is, and how it ended:
 *
 *	init HOW
 *
 * HOW	memory		it writes where nothing is
 *	instruction	it executes what is none
 *	trap		it executes a breakpoint
 *	thread		a thread of it writes where nothing is
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20

static void say_if_traced(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "TracerPid:", 10))
			puts(atoi(line + 10) ? "traced" : "not traced");
	fflush(stdout);
}

static void *write_nowhere(void *nothing)
{
	(void)nothing;
	*(volatile int *)8 = 1;
	return NULL;
}

static int be_init(const char *how)
{
	pthread_t thread;

	if (getpid() != 1 || socket(AF_INET, SOCK_DGRAM, 0) < 0)
		return 2;
	say_if_traced();
	if (!strcmp(how, "memory"))
		write_nowhere(NULL);
	else if (!strcmp(how, "instruction"))
#if defined(__x86_64__)
		__asm__ volatile("ud2");
#else
		__asm__ volatile("udf #0");
#endif
	else if (!strcmp(how, "trap"))
#if defined(__x86_64__)
		__asm__ volatile("int3");
#else
		__asm__ volatile("brk #0");
#endif
	else if (!strcmp(how, "thread") && !pthread_create(&thread, NULL, write_nowhere, NULL))
		pthread_join(thread, NULL);
	return 3; /* it went on */
}

int main(int argc, char **argv)
{
	const struct timespec limit = { .tv_sec = SECONDS };
	sigset_t ended;
	int status;
	pid_t pid;

	if (argc != 2)
		return 1;
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWPID : CLONE_NEWPID)) {
		perror("init: unshare");
		return 1;
	}
	pid = fork();
	if (!pid)
		_exit(be_init(argv[1]));
	if (pid < 0) {
		perror("init: fork");
		return 1;
	}
	if (sigtimedwait(&ended, NULL, &limit) < 0) {
		printf("it has not ended after %d s\n", SECONDS);
		kill(pid, SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	printf("status %#x\n", (unsigned int)status & ~0x80u); /* without the bit for a core */
	return 0;
}
