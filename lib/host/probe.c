// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hook that reads or writes what a pointer of the program's points to tries
 * one byte of each page first. The instruction that does so is known to the
 * handler of SIGSEGV (signal.c), which lets it answer EFAULT, as the host's
 * kernel would have. Memory that another thread unmaps meanwhile still ends
 * the program.
 */
#include "host/probe.h"

#include "isa/isa.h"

#include <errno.h>

#define PAGE 4096ul /* the least there is */

static int each_page(int (*probe)(uintptr_t), uintptr_t first, size_t bytes)
{
	uintptr_t last = first + bytes - 1;

	if (!bytes)
		return 0;
	if (last < first)
		return -EFAULT;
	for (; first < last; first = (first | (PAGE - 1)) + 1) {
		if (probe(first))
			return -EFAULT;
		if ((first | (PAGE - 1)) == UINTPTR_MAX)
			break;
	}
	return probe(last) ? -EFAULT : 0;
}

int guise_readable(const void *memory, size_t bytes)
{
	return each_page(guise_isa_probe_read, (uintptr_t)memory, bytes);
}

int guise_writable(void *memory, size_t bytes)
{
	return each_page(guise_isa_probe_write, (uintptr_t)memory, bytes);
}

uintptr_t guise_probe_fixup(uintptr_t pc)
{
	return pc >= (uintptr_t)guise_isa_probe_begin && pc < (uintptr_t)guise_isa_probe_end
		       ? (uintptr_t)guise_isa_probe_failed
		       : 0;
}
