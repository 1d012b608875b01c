/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A holder that has given up the host's file system (holder/isolation.c). What libguise would
 * open there it has been given before, or gets from another process, by what is set here. In all
 * other processes everything is 0, and the files themselves are opened.
 */
#ifndef GUISE_REGION_CONFINED_H
#define GUISE_REGION_CONFINED_H

#include "region/stack.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GUISE_PROCESS_BYTES 4096 /* of a file of /proc/PID, terminated */

struct guise_confined {
	bool on;
	/* A file of /proc/PID, "stat" or "status"; false: it cannot be read. */
	bool (*process_file)(pid_t pid, const char *name, char text[GUISE_PROCESS_BYTES]);
	/* A descriptor of both ends of a pipe (bell.c), or -errno. */
	int (*bell)(void);
	/* Of a passt that does not end by itself. */
	void (*kill_passt)(pid_t pid);
	uint64_t user_namespace; /* that of whoever started it */
	/* The kernel image, as guise_image_find() gives it. */
	int image;
	bool image_beside;
	char image_path[PATH_MAX];
};

extern struct guise_confined guise_confined;

/* Takes what is needed later while the files are there: 0, or -errno with a sentence. */
int guise_confine(const struct guise_options *opt);

#endif
