/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks for unit tests: the kernel image lies where the build has put it. */
#ifndef GUISE_TEST_KERNEL_H
#define GUISE_TEST_KERNEL_H

#include "guise/guise.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_CANNOT_RUN 77 /* exit status of a test that is skipped */

/*
 * Points $GUISE_KERNEL at BUILD/guise-kernel, this program being
 * BUILD/unit/FOLDER/X_test. Ends the test as skipped where there is none.
 */
static inline void test_find_kernel(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *unit;

	if (getenv("GUISE_KERNEL"))
		return;
	path[n > 0 ? n : 0] = '\0';
	unit = strstr(path, "/unit/");
	if (unit)
		strcpy(unit, "/guise-kernel");
	if (!unit || access(path, R_OK)) {
		printf("# no kernel image (set GUISE_KERNEL)\n");
		exit(TEST_CANNOT_RUN);
	}
	setenv("GUISE_KERNEL", path, 1);
}

/* A small stack, or the end of the test. */
static inline struct guise_stack *test_stack(const char *name, int simulated)
{
	struct guise_options options = GUISE_OPTIONS_INIT;
	struct guise_stack *s;

	options.name = name;
	options.memory = 64 << 20;
	options.simulated = simulated;
	options.seed = 1;
	s = guise_create(&options, NULL);
	if (!s) {
		printf("not ok - a stack: %s\n", guise_error());
		exit(1);
	}
	return s;
}

#endif
