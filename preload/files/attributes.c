// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a file is, without opening it: stat, access, readlink and extended attributes of
 * the stack's files (place.c), and of descriptors of them. All others, sockets among
 * them, are the host's.
 *
 * The stack is asked by statx(2), whose structure is the same on every processor.
 */
#include "preload/files/place.h"

#include "host/probe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static int fill(struct stat *st, long dir, const char *path, int flags)
{
	struct statx x;
	long err = guise_call(preload.stack, GUISE_NR_statx, dir, (long)path, flags,
			      STATX_BASIC_STATS, (long)&x, 0);

	if (!err && guise_writable(st, sizeof(*st)))
		err = -EFAULT;
	if (err)
		return (int)libc_result(err);
	memset(st, 0, sizeof(*st));
	st->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	st->st_ino = x.stx_ino;
	st->st_mode = x.stx_mode;
	st->st_nlink = x.stx_nlink;
	st->st_uid = x.stx_uid;
	st->st_gid = x.stx_gid;
	st->st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor);
	st->st_size = (off_t)x.stx_size;
	st->st_blksize = x.stx_blksize;
	st->st_blocks = (blkcnt_t)x.stx_blocks;
	st->st_atim = (struct timespec){ x.stx_atime.tv_sec, x.stx_atime.tv_nsec };
	st->st_mtim = (struct timespec){ x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec };
	st->st_ctim = (struct timespec){ x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec };
	return 0;
}

HOOK int fstat(int fd, struct stat *st)
{
	int sfd = preload_file(fd);

	if (preload_own_fd(fd)) /* programs look which there are */
		return (int)libc_result(-EBADF);
	return sfd < 0 ? HOST(fstat)(fd, st) : fill(st, sfd, "", AT_EMPTY_PATH);
}

/* Whether a path is empty, and stands for the descriptor before it. */
static bool is_empty(const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && !guise_readable(path, 1) && !*path;
}

HOOK int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	struct preload_place place;

	if (is_empty(path, flags) && (preload_file(dir) >= 0 || preload_own_fd(dir)))
		return fstat(dir, st);
	if (!preload_place(dir, path, &place))
		return HOST(fstatat)(dir, path, st, flags);
	return fill(st, place.dir, place.path, flags);
}

HOOK int stat(const char *path, struct stat *st)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(stat)(path, st);
	return fill(st, place.dir, place.path, 0);
}

HOOK int lstat(const char *path, struct stat *st)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(lstat)(path, st);
	return fill(st, place.dir, place.path, AT_SYMLINK_NOFOLLOW);
}

/* The structures are one where offsets have 64 bits. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "struct stat");

HOOK int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

HOOK int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return fstatat(dir, path, (struct stat *)st, flags);
}

HOOK int stat64(const char *path, struct stat64 *st)
{
	return stat(path, (struct stat *)st);
}

HOOK int lstat64(const char *path, struct stat64 *st)
{
	return lstat(path, (struct stat *)st);
}

HOOK int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *x)
{
	struct preload_place place = { .path = "" };

	if (is_empty(path, flags) && preload_own_fd(dir))
		return (int)libc_result(-EBADF);
	if (is_empty(path, flags) && preload_file(dir) >= 0)
		place.dir = preload_file(dir);
	else if (!preload_place(dir, path, &place))
		return HOST(statx)(dir, path, flags, mask, x);
	return (int)preload_place_call(GUISE_NR_statx, &place, flags, mask, (long)x);
}

HOOK int faccessat(int dir, const char *path, int mode, int flags)
{
	struct preload_place place;

	if (!preload_place(dir, path, &place))
		return HOST(faccessat)(dir, path, mode, flags);
	return (int)preload_place_call(GUISE_NR_faccessat, &place, mode, 0, 0);
}

HOOK int access(const char *path, int mode)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(access)(path, mode);
	return (int)preload_place_call(GUISE_NR_faccessat, &place, mode, 0, 0);
}

HOOK int euidaccess(const char *path, int mode)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(euidaccess)(path, mode);
	return (int)preload_place_call(GUISE_NR_faccessat, &place, mode, 0, 0);
}

HOOK int eaccess(const char *path, int mode) SAME_AS(euidaccess);

HOOK ssize_t readlinkat(int dir, const char *path, char *buf, size_t size)
{
	struct preload_place place;

	if (!preload_place(dir, path, &place))
		return HOST(readlinkat)(dir, path, buf, size);
	return preload_place_call(GUISE_NR_readlinkat, &place, (long)buf, (long)size, 0);
}

HOOK ssize_t readlink(const char *path, char *buf, size_t size)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(readlink)(path, buf, size);
	return preload_place_call(GUISE_NR_readlinkat, &place, (long)buf, (long)size, 0);
}

/* /proc and /sys have none; ls asks. That, if the file is there. */
static ssize_t no_attributes(const struct preload_place *place, int flags, long answer)
{
	struct statx x;

	return preload_place_call(GUISE_NR_statx, place, flags, 0, (long)&x) ? -1
									     : libc_result(answer);
}

HOOK ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(getxattr)(path, name, value, size);
	return no_attributes(&place, 0, -EOPNOTSUPP);
}

HOOK ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(lgetxattr)(path, name, value, size);
	return no_attributes(&place, AT_SYMLINK_NOFOLLOW, -EOPNOTSUPP);
}

HOOK ssize_t listxattr(const char *path, char *list, size_t size)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(listxattr)(path, list, size);
	return no_attributes(&place, 0, 0);
}

HOOK ssize_t llistxattr(const char *path, char *list, size_t size)
{
	struct preload_place place;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(llistxattr)(path, list, size);
	return no_attributes(&place, AT_SYMLINK_NOFOLLOW, 0);
}
