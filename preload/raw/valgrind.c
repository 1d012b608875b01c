// SPDX-License-Identifier: GPL-2.0-only
/*
 * Valgrind reads a program's instructions and runs others in their place, and so it does with
 * the library that the loader puts into it. There guise stays out: the holder could not
 * finish what such a program had begun in the stack, for its registers are Valgrind's, and
 * raw system calls are Valgrind's own. It is started as the static program that it is, and said
 * to be on the host's stack (outside.c); this makes that true of what it runs, too.
 *
 * To be asked, Valgrind gives a meaning to a series of instructions that has none: a
 * register is turned twice around, by 3, 13, 51 and 61 bits, and another one given its own value
 * (its manual: "The Client Request mechanism"; valgrind/valgrind.h).
 */
#include "preload/preload.h"

#define RUNNING_ON_VALGRIND 0x1001

bool preload_on_valgrind(void)
{
	volatile unsigned long request[6] = { RUNNING_ON_VALGRIND };

#if defined(__x86_64__)
	unsigned long answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
#else
	register unsigned long answer __asm__("x3") = 0;
	register volatile unsigned long *asked __asm__("x4") = request;

	__asm__ volatile(
		"ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
		"orr x10, x10, x10"
		: "+r"(answer)
		: "r"(asked)
		: "cc", "memory");
#endif
	return answer;
}
