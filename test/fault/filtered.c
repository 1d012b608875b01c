// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program like Chromium's helpers, in a sandbox that allows much, and kills a process that calls
 * prctl or
 * socket: a fork that has no sockets goes into it, makes a thread there, and an epoll. Before
 * that it asks whether there are filters, by installing none, and is in no sandbox for that: a
 * raw call for a socket, in a new thread, is seen. Prints "ok".
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL(nr)                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int enter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL(SYS_prctl),
		KILL(SYS_socket),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(f) / sizeof(*f), f };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *watch(void *result)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ep = epoll_create1(0), fd = eventfd(1, EFD_NONBLOCK);

	if (ep < 0 || fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
		*(int *)result = errno;
	else if (epoll_wait(ep, &event, 1, -1) != 1)
		*(int *)result = 2;
	else
		*(int *)result = 0;
	return NULL;
}

/* The socket stays open: a count of those that escaped would find it. */
static void *raw_socket(void *result)
{
	long fd;

#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(fd)
			 : "a"(SYS_socket), "D"(AF_INET), "S"(SOCK_DGRAM), "d"(0)
			 : "rcx", "r11", "memory");
#else
	fd = socket(AF_INET, SOCK_DGRAM, 0);
#endif
	*(int *)result = fd < 0;
	return NULL;
}

static int in_thread(void *(*function)(void *))
{
	pthread_t thread;
	int result = -1;

	if (pthread_create(&thread, NULL, function, &result) || pthread_join(thread, NULL))
		return -1;
	return result;
}

int main(void)
{
	int status = -1;
	pid_t pid;

	if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) || errno != EFAULT)
		return 1;
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) || errno != EFAULT)
		return 2;
	pid = fork();
	if (!pid)
		_exit(enter() ? 1 : in_thread(watch));
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "filtered: the child's status is %#x\n", (unsigned int)status);
		return 3;
	}
	if (in_thread(raw_socket))
		return 4;
	puts("ok");
	return 0;
}
