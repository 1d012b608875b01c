/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's memory: the part of a region from the image's data to the end of
 * the arena. Physical addresses count from its beginning, so that page frame
 * numbers are small wherever the region is mapped.
 */
#ifndef _ASM_GUISE_PAGE_H
#define _ASM_GUISE_PAGE_H

#include <linux/const.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE  (_AC(1, UL) << PAGE_SHIFT)
#define PAGE_MASK  (~(PAGE_SIZE - 1))

#ifndef __ASSEMBLY__

#include <linux/types.h>

extern unsigned long guise_memory_start, guise_memory_end;

#define PAGE_OFFSET     guise_memory_start
#define ARCH_PFN_OFFSET 0UL

#define clear_page(page)                memset((page), 0, PAGE_SIZE)
#define copy_page(to, from)             memcpy((to), (from), PAGE_SIZE)
#define clear_user_page(page, v, pg)    clear_page(page)
#define copy_user_page(to, from, v, pg) copy_page(to, from)

typedef struct {
	unsigned long pte;
} pte_t;
typedef struct {
	unsigned long pmd;
} pmd_t;
typedef struct {
	unsigned long pgd;
} pgd_t;
typedef struct {
	unsigned long pgprot;
} pgprot_t;
typedef struct page *pgtable_t;

#define pte_val(x)    ((x).pte)
#define pmd_val(x)    ((x).pmd)
#define pgd_val(x)    ((x).pgd)
#define pgprot_val(x) ((x).pgprot)
#define __pte(x)      ((pte_t){ (x) })
#define __pmd(x)      ((pmd_t){ (x) })
#define __pgd(x)      ((pgd_t){ (x) })
#define __pgprot(x)   ((pgprot_t){ (x) })

#define __pa(x) ((unsigned long)(x) - guise_memory_start)
#define __va(x) ((void *)((unsigned long)(x) + guise_memory_start))

static inline unsigned long virt_to_pfn(const void *addr)
{
	return __pa(addr) >> PAGE_SHIFT;
}
#define virt_to_pfn virt_to_pfn

static inline void *pfn_to_virt(unsigned long pfn)
{
	return __va(pfn << PAGE_SHIFT);
}
#define pfn_to_virt pfn_to_virt

#define virt_to_page(addr) pfn_to_page(virt_to_pfn(addr))
#define page_to_virt(page) pfn_to_virt(page_to_pfn(page))
#define virt_addr_valid(addr) \
	((unsigned long)(addr) >= guise_memory_start && (unsigned long)(addr) < guise_memory_end)

#define VM_DATA_DEFAULT_FLAGS VM_DATA_FLAGS_NON_EXEC

#define page_to_phys(page) ((phys_addr_t)page_to_pfn(page) << PAGE_SHIFT)
#define phys_to_page(phys) pfn_to_page((phys) >> PAGE_SHIFT)

#include <asm-generic/memory_model.h>
#include <asm-generic/getorder.h>

#ifndef pfn_valid /* before Linux 6.4, asm-generic/memory_model.h had none */
#define pfn_valid(pfn) ((pfn) < PHYS_PFN(__pa(guise_memory_end)))
#endif

#endif
#endif
