// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placeholders: descriptors of the host that occupy the numbers of private descriptors.
 *
 * Each is an AF_UNIX socket of its own, never bound nor connected, so that
 * private sockets have inodes that tell them apart: in fstat(), in
 * /proc/PID/fd, and where one process sends a socket to another (rights.c).
 *
 * To make and close one costs as much on the host as a whole socket in the stack.
 * So when a private socket is closed its placeholder may be kept, under one of guise's own
 * numbers, and used again; but not if it may be open elsewhere: as a duplicate, in a child,
 * or in a process that received it.
 */
#include "preload/preload.h"

#include "host/sys.h"

#include <fcntl.h>
#include <sys/stat.h>

#define KEPT PRELOAD_PLACEHOLDERS_KEPT

static int kept[KEPT]; /* 0: none */

int preload_placeholder_kept(unsigned int i)
{
	int fd = __atomic_load_n(&kept[i], __ATOMIC_RELAXED);

	return fd ? fd : -1;
}

static int take(void)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		int fd = __atomic_load_n(&kept[i], __ATOMIC_RELAXED)
				 ? __atomic_exchange_n(&kept[i], 0, __ATOMIC_ACQ_REL)
				 : 0;

		if (fd)
			return fd;
	}
	return 0;
}

int preload_reserve(bool cloexec)
{
	int fd, old, err = preload_prepare();

	if (err)
		return err;
	old = take();
	if (!old)
		return (int)host_sys(SYS_socket, AF_UNIX,
				     cloexec ? SOCK_STREAM | SOCK_CLOEXEC : SOCK_STREAM, 0);
	fd = (int)host_sys(SYS_fcntl, old, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	host_sys(SYS_close, old);
	return fd;
}

uint32_t preload_inode(int fd)
{
	struct stat st;

	if (host_sys(SYS_fstat, fd, &st) || !S_ISSOCK(st.st_mode))
		return 0;
	return (uint32_t)st.st_ino; /* of sockets, they have no more bits */
}

void preload_placeholder_keep(int fd)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		int none = 0, copy;

		if (__atomic_load_n(&kept[i], __ATOMIC_RELAXED))
			continue;
		copy = (int)host_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, preload.own_low);
		if (copy < 0)
			return;
		if (!__atomic_compare_exchange_n(&kept[i], &none, copy, 0, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			host_sys(SYS_close, copy);
		return;
	}
}

void preload_placeholder_drop(int fd)
{
	for (unsigned int i = 0; i < KEPT && unlikely(fd >= preload.own_low); i++) {
		int one = fd;

		if (__atomic_compare_exchange_n(&kept[i], &one, 0, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			host_sys(SYS_close, fd);
	}
}

void preload_placeholders_forked(void)
{
	int fd;

	while ((fd = take()))
		host_sys(SYS_close, fd);
}
