// SPDX-License-Identifier: GPL-2.0-only
/* x86-64; isa.h says what is what. Its traps of system calls are raw/trap.c. */
#if defined(__x86_64__)

#include "preload/isa/isa.h"

__asm__(".text\n"
	".globl dlsym, dlvsym\n"
	".type dlsym, @function\n"
	".type dlvsym, @function\n"
	"dlsym:\n"
	"	mov (%rsp), %rdx\n" /* the caller */
	"	lea 1(%rdi), %rax\n"
	"	cmp $1, %rax\n" /* RTLD_NEXT is -1, RTLD_DEFAULT is 0 */
	"	ja preload_look_up\n"
	"	mov preload_host_dlsym(%rip), %rax\n"
	"	test %rax, %rax\n"
	"	jnz 1f\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	call preload_find_dlsym\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"1:	jmp *%rax\n"
	".size dlsym, . - dlsym\n"
	"dlvsym:\n"
	"	mov (%rsp), %rcx\n"
	"	lea 1(%rdi), %rax\n"
	"	cmp $1, %rax\n"
	"	ja preload_look_up_version\n"
	"	mov preload_host_dlvsym(%rip), %rax\n"
	"	test %rax, %rax\n"
	"	jnz 1f\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	call preload_find_dlvsym\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"1:	jmp *%rax\n"
	".size dlvsym, . - dlvsym\n");

/*
 * A register is turned twice around, by 3, 13, 51 and 61 bits, and another one is given its own
 * value: to Valgrind that is a question.
 */
unsigned long preload_isa_valgrind(volatile unsigned long *request)
{
	unsigned long answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
}

/* The thread pointer stands in the storage itself. */
bool preload_isa_without_storage(void)
{
	return !__builtin_thread_pointer();
}

#endif
