// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which Linux a stack is: one that it is given ($GUISE_STACK; it joins by itself,
 * run it with GUISE_PRELOAD=off), or else one that it makes.
 */
#include "guise/guise.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	struct guise_stack *s;
	int err;

	s = getenv("GUISE_STACK") ? guise_join(-1, &err) : guise_create(NULL, &err);
	if (!s) {
		fprintf(stderr, "release: %s\n", guise_error());
		return 1;
	}
	puts(guise_version());
	guise_leave(s);
	return 0;
}
