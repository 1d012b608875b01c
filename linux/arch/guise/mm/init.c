// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: one zone from the image's data to the end of the arena. The image's data is
 * reserved, and has page structs, so that virt_to_page() works for static buffers of
 * drivers.
 */
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>

#include <asm/guise.h>
#include <asm/sections.h>

unsigned long guise_memory_start, guise_memory_end;
void *empty_zero_page;

extern void guise_memory_init(void);

void __init guise_memory_init(void)
{
	unsigned long max_zone_pfn[MAX_NR_ZONES] = { 0 };
	unsigned long arena = guise_region.ram;

	guise_memory_start = PAGE_ALIGN_DOWN((unsigned long)_sdata);
	guise_memory_end = PAGE_ALIGN_DOWN(arena + guise_region.ram_size);

	memblock_add(0, __pa(guise_memory_end));
	memblock_reserve(0, __pa(arena));
	min_low_pfn = 0;
	max_low_pfn = max_pfn = max_mapnr = PFN_DOWN(__pa(guise_memory_end));
	high_memory = (void *)guise_memory_end;
	memblock_set_current_limit(__pa(guise_memory_end));

	empty_zero_page = memblock_alloc(PAGE_SIZE, PAGE_SIZE);
	if (!empty_zero_page)
		panic("guise: no memory for the zero page");
	max_zone_pfn[ZONE_NORMAL] = max_low_pfn;
	free_area_init(max_zone_pfn);
}

void __init mem_init(void)
{
	memblock_free_all();
}
