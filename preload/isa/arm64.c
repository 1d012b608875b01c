// SPDX-License-Identifier: GPL-2.0-only
/* arm64; isa.h says what is what. The host's kernel traps no system calls there. */
#if defined(__aarch64__)

#include "preload/isa/isa.h"
#include "preload/preload.h"
#include "preload/raw/trap.h"

__asm__(".text\n"
	".globl dlsym, dlvsym\n"
	".type dlsym, %function\n"
	".type dlvsym, %function\n"
	"dlsym:\n"
	"	mov x2, x30\n" /* the caller */
	"	add x16, x0, #1\n"
	"	cmp x16, #1\n" /* RTLD_NEXT is -1, RTLD_DEFAULT is 0 */
	"	b.hi preload_look_up\n"
	"	adrp x16, preload_host_dlsym\n"
	"	ldr x16, [x16, :lo12:preload_host_dlsym]\n"
	"	cbnz x16, 1f\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl preload_find_dlsym\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"1:	br x16\n"
	".size dlsym, . - dlsym\n"
	"dlvsym:\n"
	"	mov x3, x30\n"
	"	add x16, x0, #1\n"
	"	cmp x16, #1\n"
	"	b.hi preload_look_up_version\n"
	"	adrp x16, preload_host_dlvsym\n"
	"	ldr x16, [x16, :lo12:preload_host_dlvsym]\n"
	"	cbnz x16, 1f\n"
	"	stp x29, x30, [sp, #-48]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	str x2, [sp, #32]\n"
	"	bl preload_find_dlvsym\n"
	"	mov x16, x0\n"
	"	ldr x2, [sp, #32]\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #48\n"
	"1:	br x16\n"
	".size dlvsym, . - dlvsym\n");

/*
 * A register is turned twice around, by 3, 13, 51 and 61 bits, and another one is given its own
 * value: to Valgrind that is a question.
 */
unsigned long preload_isa_valgrind(volatile unsigned long *request)
{
	register unsigned long answer __asm__("x3") = 0;
	register volatile unsigned long *asked __asm__("x4") = request;

	__asm__ volatile(
		"ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
		"orr x10, x10, x10"
		: "+r"(answer)
		: "r"(asked)
		: "cc", "memory");
	return answer;
}

bool preload_isa_without_storage(void)
{
	return false;
}

void preload_trap_begin(void)
{
	preload_trap_not_seen();
}

bool preload_trapping(void)
{
	return false;
}

void preload_trap_thread(void)
{
}

void preload_trap_dispatch_changed(long mode)
{
	(void)mode;
}

#endif
