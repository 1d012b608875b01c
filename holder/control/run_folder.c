// SPDX-License-Identifier: GPL-2.0-only
/*
 * The folder that the control socket lies in is shared with other stacks and with commands,
 * each of which adds and removes what is its own under a lock of the folder. This is the
 * holder's part of that; the rest is in internal/rundir and internal/holder/socket.go.
 */
#include "holder/control/run_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for the lock of the folder, which others hold for moments. */
#define LOCK_TRIES    200
#define LOCK_PAUSE_NS 5000000l

/* Other commands add and remove what is in the folder under its lock. */
static int lock_folder(const char *folder)
{
	const struct timespec pause = { 0, LOCK_PAUSE_NS };
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Another stack may have the name by now. */
static void free_name(const char *name, const char *socket)
{
	char target[64];
	ssize_t n = name ? readlink(name, target, sizeof(target) - 1) : -1;

	if (n < 0)
		return;
	target[n] = '\0';
	if (!strcmp(target, socket))
		unlink(name);
}

void run_folder_free(const char *path, const char *name)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
	struct stat st;
	int lock;

	if (slash && slash > folder) {
		*slash = '\0';
		lock = lock_folder(folder);
		free_name(name, slash + 1);
		unlink(path);
		if (lock >= 0) {
			/* Only what guise has made: internal/rundir marks it so. */
			if (!fstat(lock, &st) && st.st_mode & S_ISVTX)
				rmdir(folder);
			close(lock);
		}
	}
	free(folder);
}
