/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs of the tree that run on the host's stack (preload/process/outside.c finds them). */
#ifndef GUISE_HOLDER_OUTSIDE_H
#define GUISE_HOLDER_OUTSIDE_H

#include "region/join.h"

#include <stdio.h>

/* Counts it, and says so on standard error, once for each program. */
void outside_note(const struct guise_join_outside *what);

/* Writes how many programs joined, and which did not, as members of a JSON object:
 * "programs":2,"outside":[{"program":"/bin/x","why":"static","times":3}],"unnamed":0 */
void outside_write(const struct guise_region *r, FILE *out);

#endif
