// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of the stack: what tools read and write about a network beside netlink.
 *
 *	/proc/net	also as the own process's and thread's; see proc_pid_net(5)
 *	/proc/sys/net	the sysctls
 *	/sys/class/net	the interfaces, and /sys/devices/virtual/net where its links lead
 *	/dev/net/tun	makes tun and tap devices, in the network that the program's sockets
 *			are in
 *
 * These are the stack's for every program on it, and all others are the host's. When they
 * are opened they are private descriptors like sockets (descriptor.c), marked GUISE_FD_FILE.
 *
 * Two kinds of paths are recognised: absolute ones without "..", and those relative to a
 * folder of the stack that the program has open. Paths through a symbolic link of the host,
 * and relative ones after a chdir() into one of the folders above, lead to the host's files
 * of these names.
 */
#include "preload/files/place.h"

#include "host/probe.h"
#include "host/sys.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const trees[] = {
	"/proc/net",      "/proc/self/net",           "/proc/thread-self/net", "/proc/sys/net",
	"/sys/class/net", "/sys/devices/virtual/net", "/dev/net/tun",
};

/* Copies a path that may be no pointer at all. */
static bool copy(char *to, const char *path)
{
	for (unsigned int n = 0; n < PRELOAD_PATH_MAX; n++) {
		if ((!n || !((uintptr_t)(path + n) % 4096)) && guise_readable(path + n, 1))
			return false;
		to[n] = path[n];
		if (!to[n])
			return true;
	}
	return false;
}

static bool below(const char *path, const char *tree)
{
	size_t n = strlen(tree);

	return !strncmp(path, tree, n) && (path[n] == '/' || !path[n]);
}

static bool goes_up(const char *path)
{
	while ((path = strstr(path, ".."))) {
		if ((path[2] == '/' || !path[2]) && path[-1] == '/')
			return true;
		path += 2;
	}
	return false;
}

/* /proc/PID/net of the process itself becomes /proc/self/net. */
static void name_self(char *path)
{
	char own[32], rest[PRELOAD_PATH_MAX];
	int n = snprintf(own, sizeof(own), "/proc/%ld/net", host_sys(SYS_getpid));

	if (!below(path, own))
		return;
	strcpy(rest, path + n);
	if (strlen(rest) + sizeof("/proc/self/net") <= PRELOAD_PATH_MAX)
		sprintf(path, "/proc/self/net%s", rest);
}

int preload_file(int fd)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);

	return entry & GUISE_FD_FILE && entry & GUISE_FD_PRIVATE ? (int)(entry & GUISE_FD_STACK)
								 : -1;
}

bool preload_place(int dir, const char *path, struct preload_place *place)
{
	bool known = false;

	if (preload.ticket < 0 || guise_readable(path, 1) || preload_borrowed())
		return false;
	if (*path != '/') {
		place->dir = dir == AT_FDCWD ? -1 : preload_file(dir);
		return place->dir >= 0 && *path && copy(place->path, path);
	}
	if ((path[1] != 'p' && path[1] != 's' && path[1] != 'd') || !copy(place->path, path))
		return false;
	if (path[1] == 'p')
		name_self(place->path);
	for (unsigned int i = 0; i < sizeof(trees) / sizeof(*trees) && !known; i++)
		known = below(place->path, trees[i]);
	place->dir = AT_FDCWD;
	return known && !goes_up(place->path) && preload_stack();
}

long preload_place_call(long nr, const struct preload_place *place, long c, long d, long e)
{
	return libc_result(
		guise_call(preload.stack, nr, place->dir, (long)place->path, c, d, e, 0));
}

/* Flags whose numbers are the processor's own; the port has the generic ones. */
static long generic(int flags)
{
	static const struct {
		int host, port;
	} other[] = { { O_DIRECTORY, 0200000 },
		      { O_NOFOLLOW, 0400000 },
		      { O_PATH, 010000000 },
		      { __O_TMPFILE & ~O_DIRECTORY, 020000000 } };
	long same = flags & (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK);

	for (unsigned int i = 0; i < sizeof(other) / sizeof(*other); i++)
		if (flags & other[i].host)
			same |= other[i].port;
	return same;
}

int preload_place_number(long sfd, int flags)
{
	int fd = preload_reserve(flags & O_CLOEXEC);

	if (fd < 0)
		guise_call(preload.stack, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	else
		fd = preload_install(fd, (int)sfd, GUISE_FD_PRIVATE | GUISE_FD_FILE);
	return (int)libc_result(fd);
}

int preload_place_open(const struct preload_place *place, int flags, mode_t mode)
{
	long sfd = preload_place_call(GUISE_NR_openat, place, generic(flags), mode, 0);

	return sfd < 0 ? -1 : preload_place_number(sfd, flags);
}

long preload_place_nameless(void)
{
	if (preload.ticket < 0 || preload_borrowed() || !preload_stack())
		return -ENXIO;
	return guise_call(preload.stack, GUISE_NR_openat, AT_FDCWD, (long)(uintptr_t)"/",
			  generic(O_TMPFILE | O_RDWR), 0600, 0, 0);
}
