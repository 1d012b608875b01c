// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where guise's own descriptors live. A program expects its first open() to
 * give 3, and may close or dup2() over any low number; so guise moves its own
 * near the top of what the process may have, but not above 4096, because the
 * host's kernel keeps a table as long as the highest number.
 */
#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/resource.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define FD_TOP   4096 /* no higher than this ... */
#define FD_ROOM  128  /* ... and this many numbers for guise below the top */
#define FD_LEAST 512  /* limits below that are in the way of guise's own */

static int lowest_own(void)
{
	struct rlimit limit = { FD_TOP, FD_TOP };

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	if (limit.rlim_cur > FD_TOP)
		limit.rlim_cur = FD_TOP;
	return limit.rlim_cur > 2 * FD_ROOM ? (int)limit.rlim_cur - FD_ROOM
					    : (int)limit.rlim_cur / 2;
}

struct rlimit guise_fd_raise(void)
{
	struct rlimit before = { FD_TOP, FD_TOP }, raised;

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &before);
	raised = before;
	raised.rlim_cur = before.rlim_max < FD_LEAST ? before.rlim_max : FD_LEAST;
	if (before.rlim_cur < raised.rlim_cur)
		host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &raised, 0);
	return before;
}

void guise_fd_restore(struct rlimit before)
{
	if (before.rlim_cur < FD_LEAST)
		host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &before, 0);
}

int guise_fd_copy(int fd)
{
	long copy = host_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest_own());

	/* Nothing free up there: anywhere is better than nowhere. */
	if (copy == -EMFILE || copy == -EINVAL)
		copy = host_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	return (int)copy;
}

/*
 * Returns the new number, close-on-exec; the old one is closed. Where no copy
 * can be had, the descriptor stays where it is. -EBADF for a bad one.
 */
int guise_fd_high(int fd)
{
	int moved;

	if (fd < lowest_own()) {
		moved = guise_fd_copy(fd);
		if (moved >= 0) {
			host_sys(SYS_close, fd);
			return moved;
		}
	}
	return host_sys(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC) < 0 ? -EBADF : fd;
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
