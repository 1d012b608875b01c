/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many places of a region are taken: its host threads and processes, as
 * its header and slots say. The region is found in /proc/self/maps, so the
 * process must be on exactly one stack.
 */
#ifndef GUISE_TEST_REGION_PLACES_H
#define GUISE_TEST_REGION_PLACES_H

#include "guise/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct places {
	unsigned int slots, procs;
};

static inline const char *places_base(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, offset;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:guise") &&
		    sscanf(line, "%lx-%*x %*s %lx", &from, &offset) == 2 &&
		    offset == GUISE_OFF_HEADER) {
			fclose(f);
			return (const char *)(from - GUISE_OFF_HEADER);
		}
	fprintf(stderr, "no region in /proc/self/maps\n");
	exit(1);
}

static inline struct places places_taken(void)
{
	const char *base = places_base();
	const struct guise_region *r = (const void *)(base + GUISE_OFF_HEADER);
	const struct guise_slot *slot = (const void *)(base + GUISE_OFF_SLOTS);
	struct places p = { 0, 0 };

	for (int i = 1; i < GUISE_MAX_SLOTS; i++)
		p.slots += __atomic_load_n(&slot[i].used, __ATOMIC_RELAXED) != 0;
	for (int i = 1; i < GUISE_MAX_PROCS; i++)
		p.procs += __atomic_load_n(&r->procs[i].used, __ATOMIC_RELAXED) != 0;
	return p;
}

#endif
