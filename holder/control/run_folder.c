// SPDX-License-Identifier: GPL-2.0-only
/*
 * The folder that the control socket lies in is shared with other stacks and with commands,
 * each of which adds and removes what is its own under a lock of the folder. This is the
 * holder's part of that; the rest is in internal/rundir and internal/holder/socket.go. As there,
 * it counts whose the folder is that was opened, and what is in it is reached through that.
 */
#include "holder/control/run_folder.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for the lock of the folder, which others hold for moments. */
#define LOCK_TRIES    200
#define LOCK_PAUSE_NS 5000000l

/* Other commands add and remove what is in the folder under its lock. -1: it cannot be opened, or
 * is not this user's any more: then nothing in it is ours. */
static int open_folder(const char *path, bool *locked)
{
	const struct timespec pause = { 0, LOCK_PAUSE_NS };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_uid != geteuid()) {
		close(fd);
		return -1;
	}
	for (int i = 0; i < LOCK_TRIES && !*locked; i++) {
		*locked = !flock(fd, LOCK_EX | LOCK_NB);
		if (!*locked)
			nanosleep(&pause, NULL);
	}
	return fd;
}

/* Another stack may have the name by now. */
static void free_name(int folder, const char *name, const char *socket)
{
	char target[64];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

	if (n < 0)
		return;
	target[n] = '\0';
	if (!strcmp(target, socket))
		unlinkat(folder, name, 0);
}

void run_folder_free(const char *path, const char *name)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
	bool locked = false;
	int folder = -1;
	struct stat st;

	if (slash && slash > copy) {
		*slash = '\0';
		folder = open_folder(copy, &locked);
	}
	if (folder >= 0) {
		if (name && strrchr(name, '/'))
			free_name(folder, strrchr(name, '/') + 1, slash + 1);
		unlinkat(folder, slash + 1, 0);
		/* Only what guise has made: internal/rundir marks it so. */
		if (locked && !fstat(folder, &st) && st.st_mode & S_ISVTX)
			rmdir(copy);
		close(folder);
	}
	free(copy);
}
