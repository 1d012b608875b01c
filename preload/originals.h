/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libc's own functions behind the hooks. Each is looked up when it is first
 * needed, which may be before any constructor ran; the constructor looks up
 * the rest, so that a signal handler never does.
 */
#ifndef GUISE_PRELOAD_ORIGINALS_H
#define GUISE_PRELOAD_ORIGINALS_H

#include <aio.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Of libc, but declared in no header, or only for fortified programs. */
int __sigsuspend(const sigset_t *set);
int capset(void *header, const void *data);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t offset, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags, struct sockaddr *addr,
		       socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

FILE *_IO_fdopen(int fd, const char *mode);
int _IO_fclose(FILE *f);
pid_t __fork(void);
FILE *_IO_popen(const char *line, const char *mode);
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);
int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap);
int _IO_getc(FILE *f);
int _IO_putc(int c, FILE *f);

enum preload_original {
#define CALL(name, class, test, note) ORIGINAL_##name,
#include "preload/calls.h"
	ORIGINALS
};

extern void *preload_originals[ORIGINALS] __attribute__((visibility("hidden")));
void *preload_find_original(enum preload_original which);
void preload_find_originals(void);

static inline void *preload_original(enum preload_original which)
{
	void *function = __atomic_load_n(&preload_originals[which], __ATOMIC_RELAXED);

	return __builtin_expect(!!function, 1) ? function : preload_find_original(which);
}

#define HOST(name) ((__typeof__(name) *)preload_original(ORIGINAL_##name))

#endif
