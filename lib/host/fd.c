// SPDX-License-Identifier: GPL-2.0-only
/*
 * The numbers of guise's own descriptors. A program expects its first open() to
 * give 3, may close or dup2() over any low number, and may use as many as
 * its soft limit allows. So guise moves its own descriptors above that limit, where no call
 * of the program gets a number. To do so it raises the limit for a moment: the host checks
 * it only when a number is given. They stay below 4096, because the host's kernel keeps a
 * table as long as the highest number.
 *
 * Limits: where the hard limit is not above the soft one, their numbers are just below it.
 * If another thread sets the soft limit at the same moment, its change may be lost.
 */
#include "host/fd.h"

#include "host/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/memfd.h>
#include <stdint.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define FD_TOP  4096 /* no higher than this ... */
#define FD_ROOM 256  /* ... and this many numbers for guise below the top */

#define INHERITED_MOST 65536 /* numbers looked at where the host does not know close_range(2) */

int guise_fd_low(rlim_t most)
{
	if (most > FD_TOP)
		most = FD_TOP;
	/* With a lower limit there are fewer bells (bell.c). */
	if (most < FD_TOP)
		return (int)most - (int)(most < FD_ROOM ? most / 2 : FD_ROOM / 2);
	return FD_TOP - FD_ROOM;
}

struct rlimit guise_fd_raise(void)
{
	struct rlimit before = { FD_TOP, FD_TOP }, raised;

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &before);
	raised = before;
	raised.rlim_cur = before.rlim_max < FD_TOP ? before.rlim_max : FD_TOP;
	if (before.rlim_cur < raised.rlim_cur)
		host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &raised, 0);
	return before;
}

void guise_fd_restore(struct rlimit before)
{
	if (before.rlim_cur < FD_TOP && before.rlim_cur < before.rlim_max)
		host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &before, 0);
}

static long copy_above(int fd, int low)
{
	long copy = host_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, low);

	/* Nothing free up there: anywhere is better than nowhere. */
	if (copy == -EMFILE || copy == -EINVAL)
		copy = host_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	return copy;
}

int guise_fd_copy(int fd)
{
	struct rlimit limit = guise_fd_raise();
	long copy = copy_above(fd, guise_fd_low(limit.rlim_max));

	guise_fd_restore(limit);
	return (int)copy;
}

int guise_fd_onto(int fd, int own, int flags)
{
	struct rlimit limit = guise_fd_raise();
	long ret = host_sys(SYS_dup3, fd, own, flags);

	guise_fd_restore(limit);
	return (int)ret;
}

static void close_row(int first, int last)
{
	/* Since Linux 5.9. */
	if (first < last && !host_sys(SYS_close_range, first, last, 0))
		return;
	for (; first <= last; first++)
		host_sys(SYS_close, first);
}

void guise_fd_end_at_exec(int from)
{
	struct rlimit limit = { INHERITED_MOST, INHERITED_MOST };

	/* Since Linux 5.11. */
	if (!host_sys(SYS_close_range, from, ~0u, CLOSE_RANGE_CLOEXEC))
		return;
	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	if (limit.rlim_cur > INHERITED_MOST)
		limit.rlim_cur = INHERITED_MOST;
	for (; from < (int)limit.rlim_cur; from++)
		host_sys(SYS_fcntl, from, F_SETFD, FD_CLOEXEC);
}

/* Where no copy can be had, the descriptor stays where it is. */
static int copy_or_stay(int fd, int low)
{
	long copy = fd < low ? copy_above(fd, low) : -1;

	if (copy >= 0)
		return (int)copy;
	return host_sys(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC) < 0 ? -EBADF : fd;
}

void guise_fd_all_high(int *fd, unsigned int n)
{
	struct rlimit limit = guise_fd_raise();
	const int low = guise_fd_low(limit.rlim_max);
	int moved[GUISE_FD_ALL]; /* the old numbers; -1: it stays */

	for (unsigned int i = 0; i < n; i++) {
		const int copy = copy_or_stay(fd[i], low);

		moved[i] = copy < 0 || copy == fd[i] ? -1 : fd[i];
		fd[i] = copy;
	}
	for (unsigned int i = 0, last; i < n; i = last) {
		last = i + 1;
		if (moved[i] < 0)
			continue;
		/* Those of a message have numbers in a row. */
		while (last < n && moved[last] == moved[last - 1] + 1)
			last++;
		close_row(moved[i], moved[last - 1]);
	}
	guise_fd_restore(limit);
}

void guise_fd_close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		host_sys(SYS_close, fd[i]);
}

int guise_fd_high(int fd)
{
	guise_fd_all_high(&fd, 1);
	return fd;
}

/*
 * Hosts from Linux 6.3 on may refuse memory files that could be executed; older
 * ones do not know the flag that says this one is not. -errno if there is none.
 */
int guise_fd_memory(const char *name, unsigned int flags)
{
	long fd = host_sys(SYS_memfd_create, name, flags | MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && fd != -EMFILE && fd != -ENFILE && fd != -ENOMEM)
		fd = host_sys(SYS_memfd_create, name, flags | MFD_CLOEXEC);
	return (int)fd;
}

int guise_fd_shared(const char *name, uint64_t bytes)
{
	int fd = guise_fd_memory(name, MFD_ALLOW_SEALING);
	long ret = fd;

	if (ret >= 0)
		ret = host_sys(SYS_ftruncate, fd, bytes);
	/* Or who has it could make the others use memory that is gone: SIGBUS. */
	if (ret >= 0)
		ret = host_sys(SYS_fcntl, fd, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (ret >= 0)
		return fd;
	if (fd >= 0)
		host_sys(SYS_close, fd);
	return (int)ret;
}
