/* SPDX-License-Identifier: GPL-2.0-only */
/* Which files are the stack's; see place.c. */
#ifndef GUISE_PRELOAD_PLACE_H
#define GUISE_PRELOAD_PLACE_H

#include "preload/preload.h"

#include <dirent.h>

#define PRELOAD_PATH_MAX 256 /* no file of the stack has a longer path */

/* A file of the stack, as its calls want it. */
struct preload_place {
	int dir; /* a descriptor of the stack, or AT_FDCWD */
	char path[PRELOAD_PATH_MAX];
};

/* Whether path, seen from the descriptor dir of the program, is the stack's. The
 * process has joined when it is. */
bool preload_place(int dir, const char *path, struct preload_place *place);

/* A call of the stack on a place: its first two arguments are the place's. */
long preload_place_call(long nr, const struct preload_place *place, long c, long d, long e);

/* The stack's descriptor behind fd, if it is a file and no socket; else -1. */
int preload_file(int fd);

/* Opens it, with the flags of the host's open(): a descriptor of the program's,
 * or -1 with errno. */
int preload_place_open(const struct preload_place *place, int flags, mode_t mode);

/* A new file of the stack without a name, for reading and writing: the stack's descriptor, or
 * -errno. */
long preload_place_nameless(void);
/* Gives a file of the stack a number of the program's, as open() does with these flags; on failure
 * it is closed. */
int preload_place_number(long sfd, int flags);

/* files.c: true if path is not to be the host's own file: it is opened, and *fd is the result of
 * open(). */
bool preload_instead(int dir, const char *path, int flags, mode_t mode, int *fd);

/* listing.c: folders of the stack that are read with readdir(). They look like
 * libc's DIR to the program only. */
bool preload_is_listing(const DIR *d);
struct dirent64 *preload_listing_next(DIR *d);

#endif
