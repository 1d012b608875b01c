/* SPDX-License-Identifier: GPL-2.0-only */
/* Huge pages for the memory of a stack that many processes have. See huge.c. */
#ifndef GUISE_REGION_HUGE_H
#define GUISE_REGION_HUGE_H

#include "region/stack.h"

/* Makes those parts of the region huge pages that are in use now, where the host can. */
void guise_huge_collapse(struct guise_stack *s);

#endif
