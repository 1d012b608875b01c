/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls that the workloads make, on the stack that is being measured. A
 * workload is written once: the process that runs it is told which way its
 * calls go. All return -errno.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/types.h>

enum way {
	WAY_HOST,    /* libc, and so the host's kernel */
	WAY_PRELOAD, /* libc, with libguise-preload.so before it */
	WAY_API,     /* libguise, linked in */
	WAY_TUN,     /* libc, in a namespace whose only way out is a stack: guise run --mode tun */
	WAY_PASTA,   /* ... or pasta */
	WAY_SLIRP,   /* ... or slirp4netns */
};

struct calls {
	long (*getppid)(void);
	int (*nanosleep)(uint64_t ns);
	int (*socket)(int domain, int type);
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
	int (*allow)(unsigned int descriptors); /* at least so many at a time */
};

extern struct calls net;

/*
 * What both sides of the comparison have alike on a TCP socket: no delay for
 * small pieces, and a congestion control that does not pace, whatever the
 * host's default is: CUBIC, or Reno where the host has no CUBIC.
 */
void tune(int fd);

/* The way of this process. With WAY_API it joins the stack of $GUISE_STACK. */
void calls_begin(enum way way);

/* Says what failed (err: -errno, or 0) and ends the process with status 1. */
void die(int err, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* value if it is not negative; else the end, naming the call. */
#define must(call)                                         \
	({                                                 \
		__typeof__(call) must_value = (call);      \
		if (__builtin_expect(must_value < 0, 0))   \
			die((int)must_value, "%s", #call); \
		must_value;                                \
	})

#endif
