// SPDX-License-Identifier: GPL-2.0-only
/* Single calls. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void getppid_step(int fd)
{
	(void)fd;
	must(net.getppid());
}

double getppid_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(getppid_step, -1, 1000);
}

static void recv_eagain_step(int fd)
{
	char byte;
	ssize_t n = net.recv(fd, &byte, 1, MSG_DONTWAIT);

	if (__builtin_expect(n != -EAGAIN, 0))
		die((int)n, "recv on an empty socket: expected EAGAIN");
}

double recv_eagain_run(enum way way)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd;

	calls_begin(way);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = must(net.socket(AF_INET, SOCK_DGRAM));
	must(net.bind(fd, &a));
	return ns_per_step(recv_eagain_step, fd, 500);
}

static void socket_close_step(int fd)
{
	fd = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.close(fd));
}

double socket_close_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(socket_close_step, -1, 50);
}

#define MANY 100

/* More sockets at a time than guise keeps placeholders for. */
static void many_sockets_step(int fd)
{
	int all[MANY];

	(void)fd;
	for (int i = 0; i < MANY; i++)
		all[i] = must(net.socket(AF_INET, SOCK_STREAM));
	for (int i = 0; i < MANY; i++)
		must(net.close(all[i]));
}

double many_sockets_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(many_sockets_step, -1, 1) / MANY;
}

static void host_call_step(int fd)
{
	(void)fd;
	must((long)getppid());
}

double host_call_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(host_call_step, -1, 1000);
}

static void raw_call_step(int fd)
{
	(void)fd;
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_getppid) : "rcx", "r11", "memory");
	must(ret);
#else
	must(syscall(SYS_getppid)); /* guise does not see raw system calls on this processor */
#endif
}

double raw_call_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(raw_call_step, -1, 50);
}

/* Calls libc's read(), with every way: on guise it goes through the hook. */
static void host_read_step(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		die(-errno, "read from /dev/zero");
}

double host_read_run(enum way way)
{
	int fd;

	calls_begin(way);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(-errno, "/dev/zero");
	return ns_per_step(host_read_step, fd, 500);
}

static void nanosleep_step(int fd)
{
	(void)fd;
	must(net.nanosleep(100000));
}

double nanosleep_run(enum way way)
{
	calls_begin(way);
	return ns_per_step(nanosleep_step, -1, 20) / 1000;
}
