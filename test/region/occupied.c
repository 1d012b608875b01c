// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process in which every address where a region could lie is taken.
 *
 *	occupied join	joins the stack of $GUISE_STACK
 *	occupied create	makes one
 *
 * Prints the error's name and its sentence; 0 when it was an error.
 */
#include "guise/guise.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOWS 0x4000000000ul /* bytes */

/* Where they begin: usually, and where addresses have 39 bits. */
static const unsigned long from[] = { 0x7e9000000000ul, 0x1000000000ul };

int main(int argc, char **argv)
{
	struct guise_stack *s;
	void *at;
	int err;

	if (argc != 2 || (strcmp(argv[1], "join") && strcmp(argv[1], "create"))) {
		fprintf(stderr, "usage: occupied join|create\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		at = mmap((void *)from[i], WINDOWS, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at != (void *)from[i]) {
			perror("occupied: mmap");
			return 2;
		}
	}
	s = argv[1][0] == 'j' ? guise_join(-1, &err) : guise_create(NULL, &err);
	if (s) {
		printf("done\n");
		return 1;
	}
	printf("%s: %s\n", strerrorname_np(-err), guise_error());
	return 0;
}
