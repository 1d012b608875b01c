// SPDX-License-Identifier: GPL-2.0-only
/*
 * The instruction that makes guise's own system calls of the host.
 *
 * In a preloaded program the host's kernel may let only those instructions
 * through that lie in libc (preload/raw/trap.c). So the one that guise uses is
 * found by a pointer: at first one here, later one of libc's.
 */
#include "host/sys.h"

#if defined(__x86_64__)

__asm__(".text\n"
	".balign 16\n"
	"guise_gate_here:\n"
	"	syscall\n"
	"	ret\n"
	"	.globl host_sys6\n"
	"	.hidden host_sys6\n"
	"	.type host_sys6, @function\n"
	"	.balign 16\n"
	"host_sys6:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	jmp *host_sys_gate(%rip)\n" /* the return there is ours */
	"	.size host_sys6, . - host_sys6\n");

extern char guise_gate_here[] __attribute__((visibility("hidden")));
void *host_sys_gate = guise_gate_here;

#endif
