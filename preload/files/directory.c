// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/self/fd. Programs read it to close all that they did not open
 * themselves: guise's own descriptors are not listed there. (close() refuses
 * them anyway.)
 *
 * An entry's name is looked at first, and the directory only when the name is
 * the number of one of guise's own.
 */
#include "preload/files/place.h"

#include "host/sys.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int number(const char *name)
{
	int n = 0;

	for (; *name >= '0' && *name <= '9' && n < 100000000; name++)
		n = 10 * n + *name - '0';
	return *name ? -1 : n;
}

/* Whether fd is a directory of this process's descriptors. */
static bool lists_descriptors(int fd)
{
	char link[64], path[128], own[64];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(own, sizeof(own), "/proc/%ld/", host_sys(SYS_getpid));
	n = host_sys(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	if (n < 3)
		return false;
	path[n] = '\0';
	return !strncmp(path, own, strlen(own)) && !strcmp(path + n - 3, "/fd");
}

static bool hidden(int fd, const char *name)
{
	return *name >= '0' && *name <= '9' && preload_own_fd(number(name)) &&
	       lists_descriptors(fd);
}

HOOK struct dirent *readdir(DIR *d)
{
	struct dirent *e;

	if (preload_is_listing(d))
		return (struct dirent *)preload_listing_next(d);
	do {
		e = HOST(readdir)(d);
	} while (e && hidden(dirfd(d), e->d_name));
	return e;
}

HOOK struct dirent64 *readdir64(DIR *d)
{
	struct dirent64 *e;

	if (preload_is_listing(d))
		return preload_listing_next(d);
	do {
		e = HOST(readdir64)(d);
	} while (e && hidden(dirfd(d), e->d_name));
	return e;
}

/* Some records were read, n bytes: how many are left. */
static ssize_t leave_out(int fd, char *records, ssize_t n)
{
	ssize_t at = 0;

	while (at < n) {
		const struct dirent64 *e = (const void *)(records + at);
		unsigned short length = e->d_reclen;

		if (!hidden(fd, e->d_name)) {
			at += length;
			continue;
		}
		n -= length;
		memmove(records + at, records + at + length, (size_t)(n - at));
	}
	return n;
}

HOOK ssize_t getdents64(int fd, void *records, size_t size)
{
	ssize_t n, left = 0;
	int sfd = preload_file(fd);

	if (sfd >= 0)
		return inside(GUISE_NR_getdents64, sfd, (long)records, (long)size, 0, 0, 0);
	do {
		n = HOST(getdents64)(fd, records, size);
		if (n > 0 && preload.own_low < INT32_MAX)
			left = leave_out(fd, records, n);
		else
			left = n;
	} while (n > 0 && !left); /* all were ours: 0 would be the end */
	return left;
}
