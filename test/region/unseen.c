// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child that guise cannot see begin: its parent has the dispatch of system calls, by which guise
 * sees raw ones, for itself, and makes the child by a raw clone. Child and parent use the sockets,
 * in turns. Prints what each call of the child gave, and whether the parent's still work.
 *
 * With an argument the child has all descriptors and does nothing; prints its pid.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PR_SET_SYSCALL_USER_DISPATCH 59

static int pair(int fd[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);

	if (bind(listener, (void *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&addr, &len))
		return -1;
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], (void *)&addr, len))
		return -1;
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
	return fd[1];
}

static void tell(const char *what, long ret)
{
	printf("%s %s\n", what, ret < 0 ? strerrorname_np(errno) : "ok");
}

static int works(int fd[2])
{
	char c = 0;

	return send(fd[0], "x", 1, 0) == 1 && recv(fd[1], &c, 1, 0) == 1 && c == 'x';
}

static long raw_fork(void)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
	long pid;

	__asm__ volatile("syscall"
			 : "=a"(pid)
			 : "a"(SYS_clone), "D"(SIGCHLD), "S"(0), "d"(0), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return pid;
#else
	register long x8 __asm__("x8") = SYS_clone, x0 __asm__("x0") = SIGCHLD;
	register long x1 __asm__("x1") = 0, x2 __asm__("x2") = 0, x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
#endif
}

static void stay(void)
{
	long pid = raw_fork();

	if (pid)
		printf("%ld\n", pid);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static char let_through; /* 0: all system calls */
	int fd[2], own[2], status;
	long pid;

	(void)argv;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pair(fd) < 0)
		return 2;
	/* Where the host's kernel has none, raw calls are not seen anyway. */
	prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &let_through);
	if (argc > 1)
		stay();
	for (int i = 0; i < 20; i++) {
		pid = raw_fork();
		if (!pid) {
			if (i)
				_exit(send(fd[0], "y", 1, 0) == -1 && errno == EBADF ? 0 : 1);
			tell("send", send(fd[0], "y", 1, 0));
			tell("again", send(fd[0], "y", 1, 0));
			tell("poll", poll(&(struct pollfd){ fd[0], POLLOUT, 0 }, 1, 0));
			tell("close", close(fd[0]));
			tell("own", pair(own) < 0 || !works(own) ? -1 : 0);
			_exit(0);
		}
		for (int n = 0; n < 100; n++)
			if (!works(fd))
				return 3;
		if (waitpid((pid_t)pid, &status, 0) != pid || status)
			return 4;
	}
	printf("parent works\n");
	return works(fd) ? 0 : 5;
}
