// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hook that reads or writes what a pointer of the program's points to tries
 * one byte of each page first. The instruction that does so is known to the
 * handler of SIGSEGV (signal.c), which lets it answer EFAULT, as the host's
 * kernel would have. Memory that another thread unmaps meanwhile still ends
 * the program.
 */
#include "host/probe.h"

#include <errno.h>

#define PAGE 4096ul /* the least there is */

/* 0, or nonzero if the byte is not there. Writing leaves its value. */
int guise_probe_read(uintptr_t address) __attribute__((visibility("hidden")));
int guise_probe_write(uintptr_t address) __attribute__((visibility("hidden")));
extern char guise_probe_begin[] __attribute__((visibility("hidden")));
extern char guise_probe_end[] __attribute__((visibility("hidden")));
extern char guise_probe_failed[] __attribute__((visibility("hidden")));

__asm__(".text\n"
	".globl guise_probe_begin, guise_probe_read, guise_probe_write\n"
	".globl guise_probe_end, guise_probe_failed\n"
	".hidden guise_probe_begin, guise_probe_read, guise_probe_write\n"
	".hidden guise_probe_end, guise_probe_failed\n"
#if defined(__x86_64__)
	"guise_probe_begin:\n"
	"guise_probe_read:\n"
	"	movb (%rdi), %al\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	"guise_probe_write:\n"
	"	lock orb $0, (%rdi)\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	"guise_probe_end:\n"
	"guise_probe_failed:\n"
	"	movl $1, %eax\n"
	"	ret\n"
#elif defined(__aarch64__)
	"guise_probe_begin:\n"
	"guise_probe_read:\n"
	"	ldrb w1, [x0]\n"
	"	mov w0, #0\n"
	"	ret\n"
	"guise_probe_write:\n"
	"1:	ldxrb w1, [x0]\n"
	"	stxrb w2, w1, [x0]\n"
	"	cbnz w2, 1b\n"
	"	mov w0, #0\n"
	"	ret\n"
	"guise_probe_end:\n"
	"guise_probe_failed:\n"
	"	mov w0, #1\n"
	"	ret\n"
#else
#error "guise: no probe of memory for this processor"
#endif
);

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
	return each_page(guise_probe_read, (uintptr_t)memory, bytes);
}

int guise_writable(void *memory, size_t bytes)
{
	return each_page(guise_probe_write, (uintptr_t)memory, bytes);
}

uintptr_t guise_probe_fixup(uintptr_t pc)
{
	return pc >= (uintptr_t)guise_probe_begin && pc < (uintptr_t)guise_probe_end
		       ? (uintptr_t)guise_probe_failed
		       : 0;
}
