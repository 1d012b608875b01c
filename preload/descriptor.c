// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers: close, dup and fcntl of private descriptors.
 *
 * A private socket has two descriptors, the host's (the placeholder: the number
 * that the program knows) and the stack's. They are made and closed together, in
 * this order, so that every number in the table has a descriptor of the stack:
 *
 *	making	stack's descriptor, host's number, entry
 *	closing	entry, stack's descriptor, host's number
 *
 * Between these steps the number is an unconnected AF_UNIX socket to any other thread.
 */
#include "preload/preload.h"

#include "guise/layout.h"
#include "host/sys.h"
#include "region/additions.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdarg.h>

static int ebadf(void)
{
	errno = EBADF;
	return -1;
}

int preload_stale(int fd)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		preload_say("descriptor %d is a socket of the parent process, and this one has "
			    "none of its parent's sockets",
			    fd);
	return ebadf();
}

void preload_unreserve(int fd)
{
	host_sys(SYS_close, fd);
}

int preload_install(int fd, int sfd, uint32_t flags)
{
	uint32_t inode = preload_inode(fd);
	int err = preload_map_set(fd, (uint32_t)sfd | flags, inode);

	if (!err) {
		if (!(flags & GUISE_FD_FILE))
			guise_call(preload.stack, GUISE_NR_INODE, sfd, inode, 0, 0, 0, 0);
		if (fd <= STDERR_FILENO)
			preload_stdio_number(fd, true);
		return fd;
	}
	guise_call(preload.stack, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	host_sys(SYS_close, fd);
	return err;
}

/* Closes the stack's descriptor of an entry that is in no table (any more). */
static long close_inside(uint32_t entry)
{
	if (!(entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF)))
		return 0;
	return guise_call(preload.stack, GUISE_NR_close, entry & GUISE_FD_STACK, 0, 0, 0, 0, 0);
}

long preload_forget(int fd)
{
	uint32_t entry;

	if (!guise_fdmap_get(preload.map, fd) || preload_borrowed())
		return 0;
	if (fd <= STDERR_FILENO)
		preload_stdio_number(fd, false);
	entry = guise_fdmap_take(preload.map, fd);
	if ((entry & (GUISE_FD_PRIVATE | GUISE_FD_SHARED)) == GUISE_FD_PRIVATE)
		preload_placeholder_keep(fd);
	return close_inside(entry);
}

HOOK int close(int fd)
{
	long ret;

	if (preload_own_fd(fd))
		return ebadf();
	ret = preload_forget(fd);
	/* The number is free afterwards, whatever the stack said. */
	return HOST(close)(fd) ? -1 : (int)libc_result(ret);
}

HOOK int __close(int fd) SAME_AS(close);

HOOK int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int from = first;
	int fd, own;

	if (first > last || (unsigned int)flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC))
		return HOST(close_range)(first, last, flags);
	/* A host that lacks it says so before anything is closed. */
	if (HOST(close_range)(UINT_MAX, UINT_MAX, flags & (int)CLOSE_RANGE_CLOEXEC))
		return -1;

	if (flags & (int)CLOSE_RANGE_UNSHARE && preload.stack && !preload_borrowed())
		guise_additions_stay(preload.stack);
	fd = first > INT_MAX ? -1 : (int)first;
	while (fd >= 0 && !(flags & CLOSE_RANGE_CLOEXEC) &&
	       (fd = guise_fdmap_next(preload.map, fd)) >= 0 && (unsigned int)fd <= last)
		preload_forget(fd++);

	/* The host closes what lies between guise's own. */
	for (;;) {
		own = from > INT_MAX ? -1 : preload_next_own_fd((int)from);
		if (own < 0 || (unsigned int)own > last)
			return HOST(close_range)(from, last, flags);
		if ((unsigned int)own > from && HOST(close_range)(from, own - 1, flags))
			return -1;
		from = (unsigned int)preload_end_of_own_row(own);
		if (from > last)
			return 0;
	}
}

HOOK void closefrom(int lowest)
{
	unsigned int from = lowest < 0 ? 0 : (unsigned int)lowest;

	/* Hosts before 5.9 have no close_range; some containers refuse it. */
	if (close_range(from, UINT_MAX, 0) && (errno == ENOSYS || errno == EPERM))
		for (long fd = sysconf(_SC_OPEN_MAX); --fd >= (long)from;)
			close((int)fd);
}

void preload_mark_shared(int fd)
{
	uint32_t entry;

	do {
		entry = guise_fdmap_get(preload.map, fd);
	} while (entry & GUISE_FD_PRIVATE && !(entry & GUISE_FD_SHARED) &&
		 !guise_fdmap_change(preload.map, fd, entry, entry | GUISE_FD_SHARED));
}

/*
 * The table's entry for a duplicate of fd, with a new descriptor of the stack; 0 when fd is
 * the host's alone; or -errno.
 */
static long duplicate(int fd)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);
	long sfd;

	if (!entry || preload_borrowed())
		return 0;
	/* Both numbers must know the private half that may be needed later. */
	entry = preload_epoll_whole(fd);
	if (entry & GUISE_FD_PRIVATE) {
		preload_mark_shared(fd);
		entry |= GUISE_FD_SHARED;
	}
	if (!(entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF)))
		return entry;
	sfd = guise_call(preload.stack, GUISE_NR_dup, entry & GUISE_FD_STACK, 0, 0, 0, 0, 0);
	return sfd < 0 ? sfd : (long)((entry & ~GUISE_FD_STACK) | (uint32_t)sfd);
}

/*
 * The host has made fd (or failed: -1). Enters entry, which duplicate() made, for it; the entry
 * that fd had before is closed. Returns fd, or -1 with errno.
 */
static int duplicated(int fd, long entry)
{
	int saved = errno, err = 0;
	uint32_t replaced;

	if (preload_borrowed())
		return fd;
	if (fd < 0) {
		close_inside((uint32_t)entry);
		errno = saved;
		return -1;
	}
	replaced = guise_fdmap_take(preload.map, fd);
	if (entry)
		err = preload_map_set(fd, (uint32_t)entry,
				      entry & GUISE_FD_PRIVATE ? preload_inode(fd) : 0);
	if (err) {
		close_inside((uint32_t)entry);
		host_sys(SYS_close, fd);
	}
	close_inside(replaced);
	if (fd <= STDERR_FILENO)
		preload_stdio_number(fd, entry & GUISE_FD_PRIVATE && !err);
	return err ? (int)libc_result(err) : fd;
}

HOOK int dup(int fd)
{
	long entry;

	if (preload_own_fd(fd))
		return ebadf();
	entry = duplicate(fd);
	if (entry <= 0)
		return entry ? (int)libc_result(entry) : HOST(dup)(fd);
	return duplicated(HOST(dup)(fd), entry);
}

/* A placeholder that is kept makes way. */
static bool in_the_way(int fd)
{
	preload_placeholder_drop(fd);
	return preload_own_fd(fd);
}

HOOK int dup2(int old, int new)
{
	long entry;

	if (preload_own_fd(old) || in_the_way(new))
		return ebadf();
	entry = old == new ? 0 : duplicate(old);
	if (entry < 0)
		return (int)libc_result(entry);
	if (old == new || (!entry && !guise_fdmap_get(preload.map, new)))
		return HOST(dup2)(old, new);
	return duplicated(HOST(dup2)(old, new), entry);
}

HOOK int __dup2(int old, int new) SAME_AS(dup2);

HOOK int dup3(int old, int new, int flags)
{
	long entry;

	if (preload_own_fd(old) || in_the_way(new))
		return ebadf();
	entry = old == new ? 0 : duplicate(old);
	if (entry < 0)
		return (int)libc_result(entry);
	if (old == new || (!entry && !guise_fdmap_get(preload.map, new)))
		return HOST(dup3)(old, new, flags);
	return duplicated(HOST(dup3)(old, new, flags), entry);
}

static int control(int fd, int command, void *arg)
{
	int sfd = stack_fd(fd);
	long entry;

	if (preload_own_fd(fd))
		return ebadf();
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
		entry = duplicate(fd);
		if (entry < 0)
			return (int)libc_result(entry);
		fd = HOST(fcntl)(fd, command, arg);
		return entry ? duplicated(fd, entry) : fd;
	}
	if (sfd < 0)
		return HOST(fcntl)(fd, command, arg);
	switch (command) {
	case F_SETFL:
		/* Nobody could send the SIGIO: the thread is in its program. */
		if ((long)arg & O_ASYNC) {
			errno = EINVAL;
			return -1;
		}
		/* fallthrough */
	case F_GETFL:
		return (int)inside(GUISE_NR_fcntl, sfd, command, (long)arg, 0, 0, 0);
	case F_SETOWN:
	case F_SETOWN_EX:
	case F_SETSIG:
		preload_mark_shared(fd); /* the next socket must not have it */
					 /* fallthrough */
	default:
		return HOST(fcntl)(fd, command, arg);
	}
}

HOOK int fcntl(int fd, int command, ...)
{
	void *arg;
	va_list ap;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return control(fd, command, arg);
}

HOOK int fcntl64(int fd, int command, ...) SAME_AS(fcntl);
HOOK int __fcntl(int fd, int command, ...) SAME_AS(fcntl);
