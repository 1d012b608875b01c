// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages for a stack that many processes have.
 *
 * Each process has the region in page tables of its own. Where many take turns on a processor,
 * none finds its translations in the TLB any more, and a call of the stack, which touches some
 * 150 pages, takes about twice as long. With pages of 2 MiB a dozen translations are enough,
 * and a process that comes has a dozen page faults instead of hundreds.
 *
 * So the holder has the host's kernel collapse what is in use into huge pages (MADV_COLLAPSE,
 * Linux 6.1), once there are several members, and again as more come. All members map the
 * same memory, so it is done once for all of them. The kernel's page allocator takes pages
 * that are next to each other, so not much is added to what the stack keeps resident: some
 * 7 MiB. A stack with few members keeps its small pages.
 *
 * Limits: where the host's kernel does not know how, or has no huge page free, or has pages
 * that are not of 4 KiB, all stays as it is. So does the header of the region with its
 * slots, which is less than a huge page, and an image that is mapped from its own file. What
 * comes into use later has small pages until the next member comes.
 */
#include "region/huge.h"

#include "host/sys.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE   ((uint64_t)GUISE_HOST_PAGE_HUGE)
#define PAGE   4096
#define PAGES  (GUISE_HOST_PAGE_HUGE / PAGE)
#define IN_USE (PAGES / 8) /* of its pages: then it is worth a huge one */

static bool in_use(uint64_t at)
{
	unsigned char resident[PAGES];
	unsigned int n = 0;

	if (host_sys(SYS_mincore, at, HUGE, resident))
		return false;
	for (unsigned int i = 0; i < PAGES; i++)
		n += resident[i] & 1;
	return n >= IN_USE;
}

void guise_huge_collapse(struct guise_stack *s)
{
	const uint64_t base = s->region->base, end = base + s->region->size;

	/* With larger pages mincore() tells of fewer. */
	if (sysconf(_SC_PAGESIZE) != PAGE)
		return;
	for (uint64_t at = base + GUISE_OFF_TEXT; at + HUGE <= end; at += HUGE)
		if (in_use(at))
			host_sys(SYS_madvise, at, HUGE, MADV_COLLAPSE);
}
