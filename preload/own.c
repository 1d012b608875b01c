// SPDX-License-Identifier: GPL-2.0-only
/*
 * The descriptors of a process that are guise's own, and those that are not.
 *
 * Guise's own stand in rows, above the numbers that most programs use (lib/host/fd.c). A row is
 * passed over as a whole: /proc makes an inode for each descriptor that it lists, which for all
 * bells together takes longer than a join.
 */
#include "preload/preload.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#define ROW 512u /* a row that is longer is passed over in pieces */

/* Few at a time: those that are read before a row is known have their inodes. */
#define RECORDS 288

/* Guise's own descriptors, in no order; -1 where there is none. */
static int own_fd(unsigned int i)
{
	const struct guise_stack *s = preload.stack;

	switch (i) {
	case 0:
		return preload.ticket;
	case 1:
		return preload.placeholder;
	case 2:
		return preload.nudge;
	case 3:
		return s ? s->memfd : -1;
	case 4:
		return s ? s->image_fd : -1;
	case 5:
		return s ? s->alive : -1;
	case 6:
		return s ? s->control : -1;
	case 7:
		return preload.place;
	default:
		i -= 8;
		if (i < GUISE_BELLS)
			return s ? s->bell[i] : -1;
		i -= GUISE_BELLS;
		if (i < PRELOAD_PLACEHOLDERS_KEPT)
			return preload_placeholder_kept(i);
		i -= PRELOAD_PLACEHOLDERS_KEPT;
		return s && s->port[i / GUISE_LINK_FDS].backend
			       ? s->port[i / GUISE_LINK_FDS].fd[i % GUISE_LINK_FDS]
			       : -1;
	}
}

#define OWN_FDS (8 + GUISE_BELLS + PRELOAD_PLACEHOLDERS_KEPT + GUISE_MAX_LINKS * GUISE_LINK_FDS)

int preload_next_own_fd(int fd)
{
	int next = -1;

	for (unsigned int i = 0; i < OWN_FDS; i++) {
		int own = own_fd(i);

		if (own >= fd && own >= 0 && (next < 0 || own < next))
			next = own;
	}
	return next;
}

int preload_end_of_own_row(int fd)
{
	uint64_t own[ROW / 64] = { 0 };
	unsigned int n = 0;

	for (unsigned int i = 0; i < OWN_FDS; i++) {
		unsigned int at = (unsigned int)own_fd(i) - (unsigned int)fd;

		if (at < ROW)
			own[at / 64] |= 1ull << at % 64;
	}
	while (n < ROW && own[n / 64] & 1ull << n % 64)
		n++;
	return fd + (int)n;
}

/* Programs close whole ranges of numbers: the first test must be cheap. */
bool preload_own_fd(int fd)
{
	return unlikely(fd >= preload.own_low) && preload_next_own_fd(fd) == fd;
}

/* Placeholders that are kept have numbers below the soft limit, where one call gives them one. */
void preload_own_fds_changed(void)
{
	struct rlimit limit = { 1024, 1024 };
	int low = preload_next_own_fd(0), kept;
	int later; /* bells may come at any time */

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	kept = limit.rlim_cur > INT32_MAX ? INT32_MAX : (int)limit.rlim_cur;
	kept -= kept > 16 * PRELOAD_PLACEHOLDERS_KEPT ? PRELOAD_PLACEHOLDERS_KEPT : kept / 2;
	preload.own_low = low >= 0 && low < kept ? low : kept;
	later = guise_fd_low(limit.rlim_max);
	if (later < preload.own_low)
		preload.own_low = later;
}

bool preload_each_descriptor(void (*one)(int fd, void *data), void *data)
{
	_Alignas(struct dirent64) char records[RECORDS];
	long dir, n, at;

	dir = host_sys(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	while ((n = host_sys(SYS_getdents64, dir, records, sizeof(records))) > 0) {
		int own = -1; /* the last one of these records is */

		for (at = 0; at < n; at += ((struct dirent64 *)(void *)(records + at))->d_reclen) {
			const struct dirent64 *e = (const void *)(records + at);
			int fd = atoi(e->d_name);

			own = *e->d_name != '.' && preload_own_fd(fd) ? fd : -1;
			if (own < 0 && *e->d_name != '.' && fd != dir)
				one(fd, data);
		}
		/* The position in this folder is the number, behind "." and "..". */
		if (own >= 0)
			host_sys(SYS_lseek, dir, preload_end_of_own_row(own) + 2, SEEK_SET);
	}
	host_sys(SYS_close, dir);
	return true;
}
