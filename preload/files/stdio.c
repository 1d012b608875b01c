// SPDX-License-Identifier: GPL-2.0-only
/*
 * stdio over private sockets.
 *
 * A FILE of libc makes its calls inside libc, past every hook. So fdopen() of
 * a private socket gives a stream of fopencookie(), whose functions call hooks;
 * fileno() knows its number, which stands in a public field of the structure.
 *
 * A FILE of libc comes to have a private socket when a program puts the socket in the place
 * of 0, 1 or 2. Then the variable stdin, stdout or stderr gets a stream of the above kind,
 * until the number is the host's again; the stream is never freed, because the program may
 * have copied the variable. Code that copied the variable before (libstdc++, for cin and
 * cout) passes libc's FILE to functions that are hooks as well, and use the new stream
 * instead (streams.c). FILEs with other numbers write to the placeholder: ENOTCONN.
 *
 * fclose() and freopen() of such a FILE close the number inside libc, so the stack's
 * descriptor is closed before.
 */
#include "preload/preload.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

int __vasprintf_chk(char **text, int flag, const char *format, va_list ap);

/* Bits of the public field FILE._flags. */
#define UNBUFFERED 2
#define NO_READS   4
#define NO_WRITES  8

/* What stands in for stdin, stdout and stderr. */
static struct follower {
	FILE **variable;
	const char *mode;
	FILE *libcs, *ours;
	bool follows;
} followers[] = { { &stdin, "r", NULL, NULL, false },
		  { &stdout, "w", NULL, NULL, false },
		  { &stderr, "w", NULL, NULL, false } };

int preload_following;

/* The table of functions of our streams, by which they are told from libc's. */
static const void *our_functions;

static const void *functions_of(const FILE *f)
{
	return *(const void *const *)(f + 1);
}

static ssize_t cookie_read(void *cookie, char *buf, size_t n)
{
	return read((int)(intptr_t)cookie, buf, n);
}

/* As libc's own: all, or what was written before an error. */
static ssize_t cookie_write(void *cookie, const char *buf, size_t n)
{
	size_t done = 0;
	ssize_t ret;

	while (done < n) {
		ret = write((int)(intptr_t)cookie, buf + done, n - done);
		if (ret < 0)
			break;
		done += (size_t)ret;
	}
	return (ssize_t)done;
}

static int cookie_seek(void *cookie, off64_t *offset, int whence)
{
	*offset = lseek64((int)(intptr_t)cookie, *offset, whence);
	return *offset < 0 ? -1 : 0;
}

static int cookie_close(void *cookie)
{
	return close((int)(intptr_t)cookie);
}

static FILE *stream(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {
		.read = cookie_read,
		.write = cookie_write,
		.seek = cookie_seek,
		.close = cookie_close,
	};
	FILE *f = fopencookie((void *)(intptr_t)fd, mode, functions);

	if (!f)
		return NULL;
	f->_fileno = fd;
	our_functions = functions_of(f);
	return f;
}

/* Whether f is libc's own stream, and its number is private: libc would close only the number. */
static bool is_libcs(const FILE *f)
{
	return f && f->_fileno >= 0 && functions_of(f) != our_functions &&
	       guise_fdmap_get(preload.map, f->_fileno);
}

HOOK FILE *fdopen(int fd, const char *mode)
{
	int flags, sfd = stack_fd(fd);

	if (sfd < 0)
		return HOST(fdopen)(fd, mode);
	if (*mode == 'a') {
		flags = fcntl(fd, F_GETFL);
		if (flags < 0 || (!(flags & O_APPEND) && fcntl(fd, F_SETFL, flags | O_APPEND)))
			return NULL;
	}
	return stream(fd, mode);
}

HOOK FILE *_IO_fdopen(int fd, const char *mode) SAME_AS(fdopen);

HOOK int fclose(FILE *f)
{
	pid_t pid = preload_popened(f);
	int ret;

	if (is_libcs(f)) {
		fflush(f);
		preload_forget(f->_fileno);
	}
	ret = HOST(fclose)(f);
	return pid ? preload_pclose_wait(pid) : ret;
}

HOOK int _IO_fclose(FILE *f) SAME_AS(fclose);

int preload_open_flags(const char *mode)
{
	int way = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;

	way |= strchr(mode, 'e') ? O_CLOEXEC : 0;
	way |= strchr(mode, 'x') ? O_EXCL : 0;
	return way | (*mode == 'r' ? 0 : O_CREAT | (*mode == 'w' ? O_TRUNC : O_APPEND));
}

/* freopen() of one of our streams, which libc cannot turn into the stream of a file: it stays as
 * it is, and its number becomes the file's. */
static FILE *reopen_ours(const char *path, const char *mode, FILE *f)
{
	int flags = preload_open_flags(mode), fd = f->_fileno, file;

	if (!path) /* only another mode, which the socket cannot have */
		return f;
	fflush(f);
	__fpurge(f);
	clearerr(f);
	file = open64(path, flags, 0666);
	if (file < 0 || dup3(file, fd, flags & O_CLOEXEC) < 0) {
		HOST(fclose)(f);
		return NULL;
	}
	close(file);
	f->_flags &= ~(NO_READS | NO_WRITES);
	f->_flags |= flags & O_RDWR ? 0 : flags & O_WRONLY ? NO_READS : NO_WRITES;
	return f;
}

HOOK FILE *freopen64(const char *path, const char *mode, FILE *f)
{
	if (is_libcs(f)) {
		fflush(f);
		preload_forget(f->_fileno);
	} else if (f->_fileno >= 0 && functions_of(f) == our_functions) {
		struct follower *w = (unsigned int)f->_fileno < 3 ? &followers[f->_fileno] : NULL;

		if (!w || w->ours != f)
			return reopen_ours(path, mode, f);
		preload_forget(f->_fileno);
		f = w->libcs;
	}
	return HOST(freopen64)(path, mode, f);
}

HOOK FILE *freopen(const char *path, const char *mode, FILE *f) SAME_AS(freopen64);

/* ---- formatted, without a FILE ------------------------------------------- */

/* A text that was allocated, or the failure to. */
static int write_text(int fd, char *text, int length)
{
	int saved;

	if (length < 0)
		return -1;
	if (cookie_write((void *)(intptr_t)fd, text, (size_t)length) < length)
		length = -1;
	saved = errno;
	free(text);
	errno = saved;
	return length;
}

HOOK int vdprintf(int fd, const char *format, va_list ap)
{
	int length, sfd = stack_fd(fd);
	char *text;

	HOST_UNLESS_PRIVATE(sfd, fd, vdprintf, format, ap);
	length = vasprintf(&text, format, ap);
	return write_text(fd, text, length);
}

HOOK int dprintf(int fd, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vdprintf(fd, format, ap);
	va_end(ap);
	return ret;
}

HOOK int __vdprintf_chk(int fd, int flag, const char *format, va_list ap)
{
	int length, sfd = stack_fd(fd);
	char *text;

	HOST_UNLESS_PRIVATE(sfd, fd, __vdprintf_chk, flag, format, ap);
	length = __vasprintf_chk(&text, flag, format, ap);
	return write_text(fd, text, length);
}

HOOK int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = __vdprintf_chk(fd, flag, format, ap);
	va_end(ap);
	return ret;
}

/* ---- 0, 1 and 2 ----------------------------------------------------------- */

/* As the stream was that it replaces. */
static void set_buffering(FILE *ours, FILE *libcs)
{
	if (libcs->_flags & UNBUFFERED)
		setvbuf(ours, NULL, _IONBF, 0);
	else if (__flbf(libcs))
		setvbuf(ours, NULL, _IOLBF, 0);
}

/* Early, because a handler of a signal, which must not allocate, may make such a number private. */
void preload_stdio_begin(void)
{
	for (int fd = 0; fd < 3 && !followers[fd].ours; fd++)
		followers[fd].ours = stream(fd, followers[fd].mode);
}

void preload_stdio_number(int fd, bool private)
{
	struct follower *w = &followers[fd];
	FILE *now = *w->variable;

	if (private && w->ours && now && now != w->ours && now->_fileno == fd) {
		set_buffering(w->ours, now);
		w->libcs = now;
		*w->variable = w->ours;
		w->follows = true;
		__atomic_fetch_add(&preload_following, 1, __ATOMIC_RELEASE);
	} else if (!private && w->follows) {
		fflush(w->ours);
		if (now == w->ours)
			*w->variable = w->libcs;
		w->follows = false;
		__atomic_fetch_sub(&preload_following, 1, __ATOMIC_RELEASE);
	}
}

FILE *preload_stand_in(FILE *f)
{
	for (int i = 0; i < 3; i++)
		if (followers[i].follows && followers[i].libcs == f)
			return followers[i].ours;
	return f;
}
