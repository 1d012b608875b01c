// SPDX-License-Identifier: GPL-2.0-only
/* See calls.h. */
#include "calls.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 16
#define MPTCP   262 /* IPPROTO_MPTCP, which older headers of libc lack */

void die(int err, const char *fmt, ...)
{
	va_list ap;

	fputs("guise-bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", strerror(-err));
	fputc('\n', stderr);
	_exit(1);
}

/* ---- libc's: the host's, or those of the preload library ---------------------- */

static inline long result(long ret)
{
	return ret < 0 ? -errno : ret;
}

static long host_getppid(void)
{
	return getppid();
}

static int host_nanosleep(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	return (int)result(nanosleep(&ts, NULL));
}

static int host_socket(int domain, int type)
{
	return (int)result(socket(domain, type, 0));
}

static int host_mptcp(void)
{
	return (int)result(socket(AF_INET, SOCK_STREAM, MPTCP));
}

static int host_setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	return (int)result(setsockopt(fd, level, name, v, len));
}

static int host_bind(int fd, const struct sockaddr_in *a)
{
	return (int)result(bind(fd, (const struct sockaddr *)a, sizeof(*a)));
}

static int host_listen(int fd)
{
	return (int)result(listen(fd, BACKLOG));
}

static int host_accept(int fd)
{
	return (int)result(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
}

static int host_connect(int fd, const struct sockaddr_in *a)
{
	return (int)result(connect(fd, (const struct sockaddr *)a, sizeof(*a)));
}

static int host_getsockname(int fd, struct sockaddr_in *a)
{
	socklen_t len = sizeof(*a);

	return (int)result(getsockname(fd, (struct sockaddr *)a, &len));
}

static ssize_t host_read(int fd, void *buf, size_t len)
{
	return result(read(fd, buf, len));
}

static ssize_t host_write(int fd, const void *buf, size_t len)
{
	return result(write(fd, buf, len));
}

static ssize_t host_recv(int fd, void *buf, size_t len, int flags)
{
	return result(recv(fd, buf, len, flags));
}

static ssize_t host_send(int fd, const void *buf, size_t len, int flags)
{
	return result(send(fd, buf, len, flags));
}

static int host_close(int fd)
{
	return (int)result(close(fd));
}

static int host_allow(unsigned int descriptors)
{
	struct rlimit l;

	getrlimit(RLIMIT_NOFILE, &l);
	if (l.rlim_cur >= descriptors)
		return 0;
	l.rlim_cur = descriptors;
	return (int)result(setrlimit(RLIMIT_NOFILE, &l));
}

static const struct calls host_calls = {
	.getppid = host_getppid,
	.nanosleep = host_nanosleep,
	.socket = host_socket,
	.mptcp = host_mptcp,
	.setsockopt = host_setsockopt,
	.bind = host_bind,
	.listen = host_listen,
	.accept = host_accept,
	.connect = host_connect,
	.getsockname = host_getsockname,
	.read = host_read,
	.write = host_write,
	.recv = host_recv,
	.send = host_send,
	.close = host_close,
	.allow = host_allow,
};

/* ---- libguise's ------------------------------------------------------------- */

static struct guise_stack *stack;

static long api_getppid(void)
{
	return guise_call(stack, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0);
}

static int api_nanosleep(uint64_t ns)
{
	return guise_nanosleep(stack, ns);
}

static int api_socket(int domain, int type)
{
	return guise_socket(stack, domain, type, 0);
}

static int api_mptcp(void)
{
	return guise_socket(stack, AF_INET, SOCK_STREAM, MPTCP);
}

static int api_setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	return guise_setsockopt(stack, fd, level, name, v, len);
}

static int api_bind(int fd, const struct sockaddr_in *a)
{
	return guise_bind(stack, fd, (const struct sockaddr *)a, sizeof(*a));
}

static int api_listen(int fd)
{
	return guise_listen(stack, fd, BACKLOG);
}

static int api_accept(int fd)
{
	return guise_accept4(stack, fd, NULL, NULL, 0);
}

static int api_connect(int fd, const struct sockaddr_in *a)
{
	return guise_connect(stack, fd, (const struct sockaddr *)a, sizeof(*a));
}

static int api_getsockname(int fd, struct sockaddr_in *a)
{
	socklen_t len = sizeof(*a);

	return guise_getsockname(stack, fd, (struct sockaddr *)a, &len);
}

static ssize_t api_read(int fd, void *buf, size_t len)
{
	return guise_read(stack, fd, buf, len);
}

static ssize_t api_write(int fd, const void *buf, size_t len)
{
	return guise_write(stack, fd, buf, len);
}

static ssize_t api_recv(int fd, void *buf, size_t len, int flags)
{
	return guise_recvfrom(stack, fd, buf, len, flags, NULL, NULL);
}

static ssize_t api_send(int fd, const void *buf, size_t len, int flags)
{
	return guise_sendto(stack, fd, buf, len, flags, NULL, 0);
}

static int api_close(int fd)
{
	return guise_close(stack, fd);
}

/* The stack has a limit of its own for its descriptors, which every program may raise. */
static int api_allow(unsigned int descriptors)
{
	struct rlimit l = { descriptors, descriptors };

	return (int)guise_call(stack, GUISE_NR_prlimit64, 0, RLIMIT_NOFILE, (long)&l, 0, 0, 0);
}

static const struct calls api_calls = {
	.getppid = api_getppid,
	.nanosleep = api_nanosleep,
	.socket = api_socket,
	.mptcp = api_mptcp,
	.setsockopt = api_setsockopt,
	.bind = api_bind,
	.listen = api_listen,
	.accept = api_accept,
	.connect = api_connect,
	.getsockname = api_getsockname,
	.read = api_read,
	.write = api_write,
	.recv = api_recv,
	.send = api_send,
	.close = api_close,
	.allow = api_allow,
};

struct calls net;

void tune(int fd)
{
	int one = 1;

	must(net.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	if (net.setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) < 0)
		must(net.setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
}

void calls_begin(enum way way)
{
	int err;

	if (way != WAY_API) {
		net = host_calls;
		return;
	}
	stack = guise_join(-1, &err);
	if (!stack)
		die(0, "%s", guise_error());
	net = api_calls;
}
