/* SPDX-License-Identifier: GPL-2.0-only */
/* For tests of lib/region: a stack whose region has no kernel, and nothing else. */
#ifndef GUISE_TEST_REGION_H
#define GUISE_TEST_REGION_H

#include "region/stack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Gives s a region and slots, no timer that is to come, and no descriptors. */
static inline void test_region(struct guise_stack *s)
{
	struct guise_region *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	s->slots = calloc(GUISE_MAX_SLOTS, sizeof(*s->slots));
	if (r == MAP_FAILED || !s->slots)
		abort();
	s->region = r;
	r->slots_end = GUISE_MAX_SLOTS;
	r->vcpu->next_event = r->vcpu->bell_again = ~0ull;
	for (uint32_t i = 1; i < GUISE_MAX_SLOTS; i++)
		s->slots[i].id = i;
	s->memfd = s->monitor_fd = s->image_fd = s->alive = s->control = s->pump_bell = -1;
	memset(s->bell, -1, sizeof(s->bell));
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		for (int k = 0; k < GUISE_LINK_FDS; k++)
			s->port[i].fd[k] = -1;
}

#endif
