// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attack: a program tries to join a stack by each descriptor that it has inherited, and says what
 * came of it.
 */
#include "guise/guise.h"

#include <fcntl.h>
#include <stdio.h>

#define MOST 8192

int main(void)
{
	int tried = 0, joined = -1;

	for (int fd = 0; fd < MOST && joined < 0; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		tried++;
		if (guise_join(fd, NULL))
			joined = fd;
	}
	if (joined >= 0)
		printf("joined by descriptor %d\n", joined);
	else
		printf("none of %d descriptors lets it join\n", tried);
	return 0;
}
