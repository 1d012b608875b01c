// SPDX-License-Identifier: GPL-2.0-only
/*
 * Folders of the stack (place.c), read with opendir() and its kin.
 *
 * libc reads a DIR inside libc, past every hook. So such a folder has a structure of this
 * file's own instead. It begins with a value that no DIR of libc's can begin with (where a
 * descriptor and a lock stand). The functions of libc that read whole folders (glob, scandir,
 * nftw, fts) show the host's.
 */
#include "preload/files/place.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MARK 0xffffd1e55eb1e500

struct listing {
	uint64_t mark;
	int fd; /* the program's */
	size_t at, have;
	long position; /* of the entry that comes next */
	char entries[4096] __attribute__((aligned(8)));
};

bool preload_is_listing(const DIR *d)
{
	return d && ((const struct listing *)d)->mark == MARK;
}

static DIR *listing_of(int fd)
{
	struct listing *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	l->mark = MARK;
	l->fd = fd;
	l->at = l->have = 0;
	l->position = 0;
	return (DIR *)l;
}

HOOK DIR *opendir(const char *path)
{
	struct preload_place place;
	int fd, saved;
	DIR *d;

	if (!preload_place(AT_FDCWD, path, &place))
		return HOST(opendir)(path);
	fd = preload_place_open(&place, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	d = listing_of(fd);
	if (!d) {
		saved = errno;
		close(fd);
		errno = saved;
	}
	return d;
}

HOOK DIR *fdopendir(int fd)
{
	struct stat st;

	if (preload_file(fd) < 0)
		return HOST(fdopendir)(fd);
	if (fstat(fd, &st))
		return NULL;
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return NULL;
	}
	return listing_of(fd);
}

struct dirent64 *preload_listing_next(DIR *d)
{
	struct listing *l = (struct listing *)d;
	struct dirent64 *e;
	long n;

	if (l->at == l->have) {
		n = guise_call(preload.stack, GUISE_NR_getdents64, preload_file(l->fd),
			       (long)l->entries, sizeof(l->entries), 0, 0, 0);
		if (n <= 0) {
			if (n)
				libc_result(n);
			return NULL;
		}
		l->at = 0;
		l->have = (size_t)n;
	}
	e = (void *)(l->entries + l->at);
	l->at += e->d_reclen;
	l->position = e->d_off;
	return e;
}

HOOK int dirfd(DIR *d)
{
	return preload_is_listing(d) ? ((struct listing *)d)->fd : HOST(dirfd)(d);
}

HOOK int closedir(DIR *d)
{
	int fd;

	if (!preload_is_listing(d))
		return HOST(closedir)(d);
	fd = ((struct listing *)d)->fd;
	free(d);
	return close(fd);
}

HOOK long telldir(DIR *d)
{
	return preload_is_listing(d) ? ((struct listing *)d)->position : HOST(telldir)(d);
}

HOOK void seekdir(DIR *d, long position)
{
	struct listing *l = (struct listing *)d;

	if (!preload_is_listing(d)) {
		HOST(seekdir)(d, position);
		return;
	}
	lseek(l->fd, position, SEEK_SET);
	l->at = l->have = 0;
	l->position = position;
}

HOOK void rewinddir(DIR *d)
{
	if (preload_is_listing(d))
		seekdir(d, 0);
	else
		HOST(rewinddir)(d);
}
