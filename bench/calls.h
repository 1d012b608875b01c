/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of the workloads. A workload is written once; the process that runs
 * it is told which stack its calls go to, and in which way. All return -errno on
 * failure.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/types.h>

enum way {
	WAY_HOST,    /* libc: the host's stack */
	WAY_PRELOAD, /* libc, with libguise-preload.so before it: guise */
	WAY_API,     /* libguise, linked into this program */
	WAY_TUN,     /* libc, in a namespace whose only way out is a stack: guise run --mode tun */
	WAY_PASTA,   /* libc, in one whose only way out is pasta */
	WAY_SLIRP,   /* libc, in one whose only way out is slirp4netns */
};

struct calls {
	long (*getppid)(void);
	int (*nanosleep)(uint64_t ns);
	int (*socket)(int domain, int type);
	int (*mptcp)(void); /* a socket of Multipath TCP, IPv4 */
	int (*setsockopt)(int fd, int level, int name, const void *v, socklen_t len);
	int (*bind)(int fd, const struct sockaddr_in *a);
	int (*listen)(int fd);
	int (*accept)(int fd);
	int (*connect)(int fd, const struct sockaddr_in *a);
	int (*getsockname)(int fd, struct sockaddr_in *a);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	int (*close)(int fd);
	int (*allow)(unsigned int descriptors); /* raises the limit to at least so many */
};

extern struct calls net;

/*
 * Gives a TCP socket the same settings on both sides of the comparison: no delay
 * of small pieces (TCP_NODELAY), and a congestion control that does not pace,
 * whatever the host's default is: CUBIC, or Reno if the host has no CUBIC.
 */
void tune(int fd);

/* Sets the way of this process. With WAY_API it joins the stack of $GUISE_STACK. */
void calls_begin(enum way way);

/* Prints what failed (err: -errno, or 0) and ends the process with status 1. */
void die(int err, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* The call's value. If that is negative, ends the process with the call in the message. */
#define must(call)                                         \
	({                                                 \
		__typeof__(call) must_value = (call);      \
		if (__builtin_expect(must_value < 0, 0))   \
			die((int)must_value, "%s", #call); \
		must_value;                                \
	})

#endif
