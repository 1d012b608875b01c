// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad pointers, by system calls alone: "fault host" makes them to the host's
 * kernel, "fault stack" to a stack of this process. Each line is a call, what
 * is wrong with its memory, and its result; both kernels must print the same.
 *
 * The calls get memory that is unmapped, mapped without any right, read-only,
 * or ends in the middle of what is asked for.
 */
#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DATA 64

static struct guise_stack *stack; /* NULL: the host */

#define CALL(name, a, b, c, d, e, f)                                                             \
	call(SYS_##name, GUISE_NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
	     (long)(f))

static long call(long host, long guise, long a, long b, long c, long d, long e, long f)
{
	long ret;

	if (stack)
		return guise_call(stack, guise, a, b, c, d, e, f);
	ret = syscall(host, a, b, c, d, e, f);
	return ret < 0 ? -errno : ret;
}

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "fault: %s: %s\n", what, strerror((int)-ret));
	exit(1);
}

/* The ways in which memory can be bad; half: the first 8 bytes are there. */
enum badness { UNMAPPED, NO_RIGHT, READ_ONLY, HALF, NULLISH, KERNEL, BADNESSES };

static const char *const names[] = {
	"unmapped", "no-right", "read-only", "half", "null", "kernel"
};
static char *bad[BADNESSES];

static void prepare_memory(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		must(-errno, "mmap");
	bad[UNMAPPED] = p + page;
	munmap(p + page, page);
	bad[NO_RIGHT] = p + 3 * page;
	mprotect(p + 3 * page, page, PROT_NONE);
	bad[READ_ONLY] = p + 5 * page;
	mprotect(p + 5 * page, page, PROT_READ);
	bad[HALF] = p + 7 * page - 8;
	memset(bad[HALF], 0, 8);
	munmap(p + 7 * page, page);
	bad[NULLISH] = NULL;
	bad[KERNEL] = (char *)(1ul << 63);
}

static const char *kind;

static void show(const char *what, enum badness how, long ret)
{
	printf("%s %s %s %ld\n", kind, what, names[how], ret);
	/* What a call stored there before it failed is no input for the next. */
	memset(bad[HALF], 0, 8);
}

struct pair {
	int in, out; /* what is written to out can be read from in */
};

static struct pair stream_pair(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	long listener = must(CALL(socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0), "socket");
	struct pair p;

	must(CALL(bind, listener, &a, sizeof(a), 0, 0, 0), "bind");
	must(CALL(listen, listener, 1, 0, 0, 0, 0), "listen");
	must(CALL(getsockname, listener, &a, &len, 0, 0, 0), "getsockname");
	p.out = (int)must(CALL(socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0), "socket");
	must(CALL(connect, p.out, &a, sizeof(a), 0, 0, 0), "connect");
	p.in = (int)must(CALL(accept4, listener, NULL, NULL, 0, 0, 0), "accept");
	CALL(close, listener, 0, 0, 0, 0, 0);
	return p;
}

static struct pair datagram_pair(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	struct pair p;

	p.in = (int)must(CALL(socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0), "socket");
	must(CALL(bind, p.in, &a, sizeof(a), 0, 0, 0), "bind");
	must(CALL(getsockname, p.in, &a, &len, 0, 0, 0), "getsockname");
	p.out = (int)must(CALL(socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0), "socket");
	must(CALL(connect, p.out, &a, sizeof(a), 0, 0, 0), "connect");
	return p;
}

/* DATA bytes are there to be received. */
static void feed(struct pair p)
{
	struct pollfd ready = { p.in, POLLIN, 0 };
	char data[DATA] = "data";

	must(CALL(sendto, p.out, data, sizeof(data), 0, NULL, 0), "send");
	must(CALL(ppoll, &ready, 1, NULL, NULL, 0, 0) - 1, "poll");
}

/* A failed receive keeps the data of a stream, and takes a datagram. */
static void left(struct pair p, const char *after, enum badness how)
{
	static char buf[4 * DATA];
	long n, all = 0;

	while ((n = CALL(recvfrom, p.in, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL)) > 0)
		all += n;
	/* The host looks at such an address before it takes a datagram, a stack when it copies. */
	if (how != KERNEL)
		printf("%s %s %s leaves %ld\n", kind, after, names[how], all);
}

static void receive(struct pair p, enum badness how)
{
	char *m = bad[how], control[256];
	static char good[DATA];
	struct iovec iov = { m, DATA }, two[2] = { { good, 8 }, { m, DATA } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	feed(p);
	show("read", how, CALL(read, p.in, m, DATA, 0, 0, 0));
	left(p, "read", how);
	feed(p);
	show("recvfrom", how, CALL(recvfrom, p.in, m, DATA, MSG_DONTWAIT, NULL, NULL));
	left(p, "recvfrom", how);
	feed(p);
	show("readv", how, CALL(readv, p.in, two, 2, 0, 0, 0));
	left(p, "readv", how);
	feed(p);
	show("recvmsg", how, CALL(recvmsg, p.in, &msg, MSG_DONTWAIT, 0, 0, 0));
	left(p, "recvmsg", how);
	show("recvmsg header", how, CALL(recvmsg, p.in, m, MSG_DONTWAIT, 0, 0, 0));
	msg.msg_iov = (struct iovec *)m;
	show("recvmsg vector", how, CALL(recvmsg, p.in, &msg, MSG_DONTWAIT, 0, 0, 0));
	msg.msg_iov = two;
	two[1].iov_base = good;
	msg.msg_control = how == HALF ? m : control;
	msg.msg_controllen = sizeof(control);
	msg.msg_name = m;
	msg.msg_namelen = sizeof(struct sockaddr_in);
	feed(p);
	show("recvmsg name", how, CALL(recvmsg, p.in, &msg, MSG_DONTWAIT, 0, 0, 0));
	left(p, "recvmsg name", how);
}

static void transmit(struct pair p, enum badness how)
{
	char *m = bad[how];
	static char good[DATA];
	struct iovec iov = { m, DATA }, two[2] = { { good, 8 }, { m, DATA } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	show("write", how, CALL(write, p.out, m, DATA, 0, 0, 0));
	show("sendto", how, CALL(sendto, p.out, m, DATA, 0, NULL, 0));
	show("sendto name", how, CALL(sendto, p.out, good, DATA, 0, m, sizeof(struct sockaddr_in)));
	show("sendmsg", how, CALL(sendmsg, p.out, &msg, 0, 0, 0, 0));
	show("sendmsg header", how, CALL(sendmsg, p.out, m, 0, 0, 0, 0));
	msg.msg_iov = (struct iovec *)m;
	show("sendmsg vector", how, CALL(sendmsg, p.out, &msg, 0, 0, 0, 0));
	show("writev", how, CALL(writev, p.out, two, 2, 0, 0, 0));
	msg.msg_iov = two;
	msg.msg_iovlen = 1;
	msg.msg_control = m;
	msg.msg_controllen = 32;
	show("sendmsg control", how, CALL(sendmsg, p.out, &msg, 0, 0, 0, 0));
	left(p, "sending", how);
}

static void options(struct pair p, enum badness how)
{
	char *m = bad[how];
	char value[256];
	socklen_t len = 4, large = sizeof(value);

	show("setsockopt", how, CALL(setsockopt, p.out, SOL_SOCKET, SO_KEEPALIVE, m, 4, 0));
	show("setsockopt timeout", how, CALL(setsockopt, p.out, SOL_SOCKET, SO_RCVTIMEO, m, 16, 0));
	show("getsockopt", how, CALL(getsockopt, p.out, SOL_SOCKET, SO_TYPE, m, &len, 0));
	show("getsockopt length", how, CALL(getsockopt, p.out, SOL_SOCKET, SO_TYPE, value, m, 0));
	show("getsockopt large", how,
	     CALL(getsockopt, p.out, SOL_IP, IP_OPTIONS, value, how == HALF ? (void *)&large : m,
		  0));
	len = sizeof(struct sockaddr_in);
	show("getsockname", how, CALL(getsockname, p.out, m, &len, 0, 0, 0));
	show("getsockname length", how, CALL(getsockname, p.out, value, m, 0, 0, 0));
	show("getpeername", how, CALL(getpeername, p.out, m, &len, 0, 0, 0));
	show("bind", how, CALL(bind, p.out, m, sizeof(struct sockaddr_in), 0, 0, 0));
	show("connect", how, CALL(connect, p.out, m, sizeof(struct sockaddr_in), 0, 0, 0));
	show("ioctl FIONREAD", how, CALL(ioctl, p.in, FIONREAD, m, 0, 0, 0));
	show("ioctl FIONBIO", how, CALL(ioctl, p.in, FIONBIO, m, 0, 0, 0));
	show("ioctl SIOCGIFCONF", how, CALL(ioctl, p.in, 0x8912, m, 0, 0, 0));
	show("ioctl SIOCGIFFLAGS", how, CALL(ioctl, p.in, 0x8913, m, 0, 0, 0));
}

static void waiting(struct pair p, enum badness how)
{
	struct pollfd good = { p.in, POLLIN, 0 };
	struct epoll_event ev = { .events = EPOLLOUT };
	struct timespec none = { 0, 0 };
	char *m = bad[how];
	int ep = (int)must(CALL(epoll_create1, 0, 0, 0, 0, 0, 0), "epoll_create1");

	show("ppoll", how, CALL(ppoll, m, 2, &none, NULL, 0, 0));
	show("ppoll timeout", how,
	     CALL(ppoll, &good, how == NULLISH ? 0 : 1, how == NULLISH ? (void *)&none : m, NULL, 0,
		  0));
	show("pselect6", how, CALL(pselect6, 64, m, NULL, NULL, &none, NULL));
	show("epoll_ctl", how, CALL(epoll_ctl, ep, EPOLL_CTL_ADD, p.out, m, 0, 0));
	CALL(epoll_ctl, ep, EPOLL_CTL_DEL, p.out, NULL, 0, 0);
	must(CALL(epoll_ctl, ep, EPOLL_CTL_ADD, p.out, &ev, 0, 0), "epoll_ctl");
	show("epoll_pwait", how, CALL(epoll_pwait, ep, m, 4, 0, NULL, 8));
	CALL(close, ep, 0, 0, 0, 0, 0);
}

static void rest(enum badness how)
{
	int fd = (int)must(CALL(socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0, 0, 0), "netlink");

	kind = "netlink";
	show("sendto", how, CALL(sendto, fd, bad[how], DATA, 0, NULL, 0));
	CALL(close, fd, 0, 0, 0, 0, 0);
	kind = "file";
	show("pipe2", how, CALL(pipe2, bad[how] + (how == HALF ? 4 : 0), 0, 0, 0, 0, 0));
	show("openat", how,
	     CALL(openat, AT_FDCWD, how == HALF ? bad[UNMAPPED] : bad[how], O_RDONLY, 0, 0, 0));
	fd = (int)must(CALL(openat, AT_FDCWD, "/proc/net/dev", O_RDONLY, 0, 0, 0), "/proc/net/dev");
	show("read", how, CALL(read, fd, bad[how], DATA, 0, 0, 0));
	CALL(close, fd, 0, 0, 0, 0, 0);
	show("uname", how, CALL(uname, bad[how], 0, 0, 0, 0, 0));
}

int main(int argc, char **argv)
{
	int err, how;

	if (argc != 2 || (strcmp(argv[1], "host") && strcmp(argv[1], "stack"))) {
		fprintf(stderr, "usage: fault host|stack\n");
		return 2;
	}
	if (argv[1][0] == 's') {
		stack = guise_create(NULL, &err);
		if (!stack) {
			fprintf(stderr, "fault: %s\n", guise_error());
			return 1;
		}
	}
	prepare_memory();
	for (how = 0; how < BADNESSES; how++) {
		const struct {
			const char *kind;
			struct pair (*make)(void);
		} of[] = { { "tcp", stream_pair }, { "udp", datagram_pair } };

		for (int i = 0; i < 2; i++) {
			struct pair p = of[i].make();

			kind = of[i].kind;
			receive(p, (enum badness)how);
			transmit(p, (enum badness)how);
			waiting(p, (enum badness)how);
			options(p, (enum badness)how);
			CALL(close, p.in, 0, 0, 0, 0, 0);
			CALL(close, p.out, 0, 0, 0, 0, 0);
		}
		rest((enum badness)how);
	}
	if (stack)
		guise_leave(stack);
	return 0;
}
