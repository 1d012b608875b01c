// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening files. Those of the stack (place.c) become private descriptors; the others are
 * the host's.
 *
 * One file of the host must look different to programs on a stack: /etc/resolv.conf, whose
 * name servers are addresses that the holder relays. guise run puts the right text into
 * $GUISE_RESOLV_CONF, and a program that opens the file for reading gets a file in memory
 * with that text; so no privilege is needed, and nothing is changed on the host. Opening it
 * for writing, and all other paths, go to the host. A program that may not write files as long
 * as it likes (ulimit -f) would be killed by the host when the text is written: it gets a file
 * in the stack's memory.
 *
 * The resolver of this library (resolver.c) knows a few names beside those of /etc/hosts:
 * $GUISE_HOSTS, lines of the same form. They are added only when c-ares, for the resolver,
 * reads that file; programs find the file as it is.
 */
#include "host/probe.h"
#include "host/fd.h"
#include "host/sys.h"
#include "region/stack.h"
#include "preload/files/place.h"
#include "preload/names/resolver.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESOLV_CONF "/etc/resolv.conf"
#define HOSTS       "/etc/hosts"

/* Copies, because some programs overwrite the memory of their environment. */
static const char *resolv_conf, *hosts;

static __thread bool resolving __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void remember(void)
{
	const char *text = secure_getenv("GUISE_RESOLV_CONF");

	resolv_conf = text && *text ? strdup(text) : NULL;
	text = secure_getenv("GUISE_HOSTS");
	hosts = text && *text ? strdup(text) : NULL;
}

void resolver_reads_hosts(bool begins)
{
	resolving = begins;
}

static bool files_are_limited(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	host_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit);
	return limit.rlim_cur != RLIM_INFINITY;
}

/* A file in memory: the host's, or where the host would not let it be written, the stack's. */
struct memory_file {
	bool inside;
	int fd;
};

static struct memory_file make_file(void)
{
	struct memory_file f = { .inside = files_are_limited() };

	f.fd = f.inside ? (int)preload_place_nameless() : guise_fd_memory("guise", 0);
	return f;
}

static bool put(struct memory_file f, const char *text, size_t n)
{
	while (n) {
		long done = f.inside ? guise_call(preload.stack, GUISE_NR_write, f.fd, (long)text,
						  (long)n, 0, 0, 0)
				     : host_sys(SYS_write, f.fd, text, n);

		if (done <= 0)
			return false;
		text += done;
		n -= (size_t)done;
	}
	return true;
}

/* A file in memory, with the content of the file named first (or NULL) and then text. -1 on
 * failure. */
static int file_of(const char *first, const char *text, int flags)
{
	struct memory_file f = make_file();
	bool good = f.fd >= 0;
	char piece[4096];
	long n = 0, in;

	if (good && first) {
		in = host_sys(SYS_openat, AT_FDCWD, first, O_RDONLY | O_CLOEXEC);
		while (good && in >= 0 && (n = host_sys(SYS_read, in, piece, sizeof(piece))) > 0)
			good = put(f, piece, (size_t)n);
		if (in >= 0)
			host_sys(SYS_close, in);
		good = good && put(f, "\n", 1);
	}
	good = good && put(f, text, strlen(text));
	if (good && f.inside) {
		guise_call(preload.stack, GUISE_NR_lseek, f.fd, 0, SEEK_SET, 0, 0, 0);
		return preload_place_number(f.fd, flags);
	}
	if (good) {
		/* As after open(): for reading only, at its beginning, with the lowest number. */
		snprintf(piece, sizeof(piece), "/proc/self/fd/%d", f.fd);
		in = host_sys(SYS_openat, AT_FDCWD, piece, O_RDONLY | O_CLOEXEC);
		if (in >= 0) {
			host_sys(SYS_dup3, in, f.fd, flags & O_CLOEXEC);
			host_sys(SYS_close, in);
		} else {
			host_sys(SYS_lseek, f.fd, 0, SEEK_SET);
			host_sys(SYS_fcntl, f.fd, F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
		}
		return f.fd;
	}
	if (f.fd >= 0 && f.inside)
		guise_call(preload.stack, GUISE_NR_close, f.fd, 0, 0, 0, 0, 0);
	else if (f.fd >= 0)
		host_sys(SYS_close, f.fd);
	return -1;
}

/* The descriptor of a file in memory that takes the place of a file of the host, or -1. */
static int in_memory(const char *path, int flags)
{
	if (likely(!resolv_conf && !resolving))
		return -1;
	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_PATH | O_TRUNC | O_DIRECTORY) ||
	    guise_readable(path, 1))
		return -1;
	if (resolv_conf && !strcmp(path, RESOLV_CONF))
		return file_of(NULL, resolv_conf, flags);
	if (resolving && hosts && !strcmp(path, HOSTS))
		return file_of(HOSTS, hosts, flags);
	return -1;
}

bool preload_instead(int dir, const char *path, int flags, mode_t mode, int *fd)
{
	struct preload_place place;

	if (preload_place(dir, path, &place)) {
		*fd = preload_place_open(&place, flags, mode);
		return true;
	}
	*fd = in_memory(path, flags);
	return *fd >= 0;
}

#define MODE_OF(flags, mode)                             \
	do {                                             \
		if ((flags) & (O_CREAT | __O_TMPFILE)) { \
			va_list ap;                      \
                                                         \
			va_start(ap, flags);             \
			mode = va_arg(ap, mode_t);       \
			va_end(ap);                      \
		}                                        \
	} while (0)

HOOK int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	MODE_OF(flags, mode);
	return preload_instead(AT_FDCWD, path, flags, mode, &fd) ? fd
								 : HOST(open)(path, flags, mode);
}

HOOK int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	MODE_OF(flags, mode);
	return preload_instead(AT_FDCWD, path, flags, mode, &fd) ? fd
								 : HOST(open64)(path, flags, mode);
}

HOOK int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	MODE_OF(flags, mode);
	return preload_instead(dir, path, flags, mode, &fd) ? fd
							    : HOST(openat)(dir, path, flags, mode);
}

HOOK int openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	MODE_OF(flags, mode);
	return preload_instead(dir, path, flags, mode, &fd)
		       ? fd
		       : HOST(openat64)(dir, path, flags, mode);
}

HOOK int __open_2(const char *path, int flags)
{
	int fd;

	return preload_instead(AT_FDCWD, path, flags, 0, &fd) ? fd : HOST(__open_2)(path, flags);
}

HOOK int __open64_2(const char *path, int flags)
{
	int fd;

	return preload_instead(AT_FDCWD, path, flags, 0, &fd) ? fd : HOST(__open64_2)(path, flags);
}

HOOK int __openat_2(int dir, const char *path, int flags)
{
	int fd;

	return preload_instead(dir, path, flags, 0, &fd) ? fd : HOST(__openat_2)(dir, path, flags);
}

HOOK int __openat64_2(int dir, const char *path, int flags)
{
	int fd;

	return preload_instead(dir, path, flags, 0, &fd) ? fd
							 : HOST(__openat64_2)(dir, path, flags);
}

/* True if path is not to be the host's own file; *f is then a stream of what it is to be. */
static bool stream_instead(const char *path, const char *mode, FILE **f)
{
	int fd, saved;

	if (guise_readable(mode, 1) ||
	    !preload_instead(AT_FDCWD, path, preload_open_flags(mode), 0666, &fd))
		return false;
	*f = fd < 0 ? NULL : fdopen(fd, mode);
	if (fd >= 0 && !*f) {
		saved = errno;
		close(fd);
		errno = saved;
	}
	return true;
}

HOOK FILE *fopen(const char *path, const char *mode)
{
	FILE *f;

	return stream_instead(path, mode, &f) ? f : HOST(fopen)(path, mode);
}

HOOK FILE *fopen64(const char *path, const char *mode)
{
	FILE *f;

	return stream_instead(path, mode, &f) ? f : HOST(fopen64)(path, mode);
}
