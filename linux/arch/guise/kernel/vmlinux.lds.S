/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The image: a static position-independent executable, linked at 0, with its sections
 * at the offsets of guise/layout.h. Text and constants without pointers are never
 * written, not even by relocation. What has a pointer is part of the region's memory:
 * there the process that creates a region adds the base to each pointer
 * (R_*_RELATIVE), once. Constants among it, and what is constant after the boot, are a
 * segment of their own, the first: once the kernel has booted they are only read
 * (lib/region/map.c). Segments begin on boundaries of huge pages, so that no such page
 * is of two segments.
 */
#include <guise/layout.h>
#include <asm/page.h>
#include <asm/thread_info.h>
#include <generated/utsrelease.h>
#include <linux/version.h>

#define LOAD_OFFSET 0
#define EMITS_PT_NOTE
#include <asm-generic/vmlinux.lds.h>

/* The sections that position-independent code adds to .data. */
#undef DATA_MAIN
#define DATA_MAIN .data .data.rel .data.rel.local .data.rel.local.*

/* The size in bytes of a GOT without entries: the linker reserves words in it. */
#ifdef CONFIG_GUISE_ARM64
#define GOT_RESERVED 32
#else
#define GOT_RESERVED 24
#endif

#undef NOTES_HEADERS
#undef NOTES_HEADERS_RESTORE
#define NOTES_HEADERS :constants :note
#define NOTES_HEADERS_RESTORE __restore_ph : { *(.__restore_ph) } :constants

ENTRY(guise_boot)
jiffies = jiffies_64;

PHDRS
{
	text PT_LOAD FLAGS(5);
	rodata PT_LOAD FLAGS(4);
	constants PT_LOAD FLAGS(6);
	data PT_LOAD FLAGS(6);
	dynamic PT_DYNAMIC FLAGS(4);
	note PT_NOTE FLAGS(4);
}

SECTIONS
{
	/* These are not in the file: the host side maps them. */
	.guise_ops GUISE_OFF_OPS (NOLOAD) : {
		guise_host = .;
		. += GUISE_OFF_HEADER - GUISE_OFF_OPS;
	} :NONE
	.guise_header GUISE_OFF_HEADER (NOLOAD) : {
		guise_region = .;
		. += GUISE_OFF_SLOTS - GUISE_OFF_HEADER;
	} :NONE
	.guise_slots GUISE_OFF_SLOTS (NOLOAD) : {
		guise_slots = .;
		. += GUISE_OFF_TEXT - GUISE_OFF_SLOTS;
	} :NONE

	. = GUISE_OFF_TEXT;
	_text = .;
	/* struct guise_image */
	.guise_image : {
		QUAD(GUISE_MAGIC)
		LONG(GUISE_ABI)
		LONG(LINUX_VERSION_CODE)
		QUAD(guise_boot)
		QUAD(guise_resume)
		QUAD(guise_copy_start)
		QUAD(guise_copy_end)
		QUAD(guise_copy_fixup)
		QUAD(_end)
		QUAD(guise_host_redo)
		QUAD(guise_host_redo_end)
		QUAD(guise_leave_load)
		QUAD(guise_leave_load_end)
		QUAD(guise_adopt)
		QUAD(_etext)
		QUAD(guise_refuse)
		QUAD(guise_constants_end)
		KEEP(*(.guise.release))
	} :text
	.text : ALIGN(64) {
		_stext = .;
		TEXT_TEXT
		SCHED_TEXT
		LOCK_TEXT
#ifdef CPUIDLE_TEXT /* a section of its own, before Linux 6.3 */
		CPUIDLE_TEXT
#endif
		KPROBES_TEXT
		ENTRY_TEXT
		IRQENTRY_TEXT
		SOFTIRQENTRY_TEXT
		_etext = .;
	} :text
	__init_begin = .;
	INIT_TEXT_SECTION(16)
	.exit.text : { EXIT_TEXT }

	. = ALIGN(GUISE_HOST_PAGE_HUGE);
#ifndef CONFIG_KALLSYMS
	/* With CONFIG_KALLSYMS, RO_DATA puts these with the data: the table of symbols has
	 * a pointer, and lockdep takes what is within RO_DATA as constant. */
	.constants : {
		*(.rodata) *(.rodata.*)
	} :rodata
#endif
	__ksymtab_strings : { *(__ksymtab_strings) } :rodata
	.hash : { *(.hash) } :rodata
	.gnu.hash : { *(.gnu.hash) } :rodata
	.dynsym : { *(.dynsym) } :rodata
	.dynstr : { *(.dynstr) } :rodata
	.rela.dyn : { *(.rela.*) *(.rela_*) *(.relaguise_*) } :rodata

	. = GUISE_OFF_DATA;
	_sdata = .;
	.dynamic : { *(.dynamic) } :constants :dynamic
	.got : { *(.got) *(.got.plt) *(.igot*) *(.plt) *(.plt.*) *(.iplt) } :constants
	ASSERT(SIZEOF(.got) <= GOT_RESERVED, "code refers to data through a GOT")
	RO_DATA(64)
	EXCEPTION_TABLE(8)
	guise_hooks : ALIGN(8) {
		__start_guise_hooks = .;
		KEEP(*(guise_hooks))
		__stop_guise_hooks = .;
	}
	guise_controls : ALIGN(8) {
		__start_guise_controls = .;
		KEEP(*(guise_controls))
		__stop_guise_controls = .;
	}
	. = ALIGN(GUISE_HOST_PAGE_HUGE);
	guise_constants_end = .;
	RW_DATA(64, PAGE_SIZE, THREAD_SIZE) :data
	INIT_DATA_SECTION(64)
	.exit.data : { EXIT_DATA }
	PERCPU_SECTION(64)
	_edata = .;
	__init_end = .;
	BSS_SECTION(64, PAGE_SIZE, 64)
	. = ALIGN(PAGE_SIZE);
	_end = .;
	ASSERT(_end <= GUISE_OFF_ARENA, "the image's data does not fit before the arena")

	STABS_DEBUG
	DWARF_DEBUG
	ELF_DETAILS

	/DISCARD/ : {
		*(.interp) *(.sframe) *(.eh_frame) *(.eh_frame_hdr) *(.note.gnu.property)
		EXIT_CALL
		COMMON_DISCARDS
	}
}
