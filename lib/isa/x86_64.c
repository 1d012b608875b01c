// SPDX-License-Identifier: GPL-2.0-only
/*
 * x86-64; isa.h says what is what.
 *
 * In a preloaded program the host's kernel may allow only system calls from libc's
 * text (preload/raw/trap.c). So guise calls the instruction through a pointer, which
 * at first leads to one here, and later to one of libc.
 */
#if defined(__x86_64__)

#include "isa/isa.h"

#include <elf.h>
#include <string.h>

#define USER_CODE 0x33     /* cs of a program */
#define FLAGS     0xcd5ull /* arithmetic and direction */

const unsigned int guise_isa_machine = EM_X86_64;
const unsigned int guise_isa_relative = R_X86_64_RELATIVE;
const size_t guise_isa_frame_size = sizeof(gregset_t);

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
	"	jmp *host_sys_gate(%rip)\n" /* the return there is this file's */
	"	.size host_sys6, . - host_sys6\n"

	"	.globl guise_isa_probe_begin, guise_isa_probe_read, guise_isa_probe_write\n"
	"	.globl guise_isa_probe_end, guise_isa_probe_failed\n"
	"	.hidden guise_isa_probe_begin, guise_isa_probe_read, guise_isa_probe_write\n"
	"	.hidden guise_isa_probe_end, guise_isa_probe_failed\n"
	"guise_isa_probe_begin:\n"
	"guise_isa_probe_read:\n"
	"	movb (%rdi), %al\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	"guise_isa_probe_write:\n"
	"	lock orb $0, (%rdi)\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	"guise_isa_probe_end:\n"
	"guise_isa_probe_failed:\n"
	"	movl $1, %eax\n"
	"	ret\n");

extern char guise_gate_here[] __attribute__((visibility("hidden")));
void *host_sys_gate = guise_gate_here;

void guise_isa_relax(void)
{
	__builtin_ia32_pause();
}

unsigned long *guise_isa_counter(ucontext_t *uc)
{
	return (unsigned long *)&uc->uc_mcontext.gregs[REG_RIP];
}

uint64_t guise_isa_ip(const struct user_regs_struct *r)
{
	return r->rip;
}

uint64_t guise_isa_sp(const struct user_regs_struct *r)
{
	return r->rsp;
}

void guise_isa_set_ip(struct user_regs_struct *r, uint64_t to)
{
	r->rip = to;
}

void guise_isa_set_sp(struct user_regs_struct *r, uint64_t to)
{
	r->rsp = to;
}

/* rcx counts what is left of a copy: isa_x86_64.S. */
void guise_isa_end_copy(struct user_regs_struct *r)
{
	(void)r;
}

/* int3 raises it when it is over. */
bool guise_isa_before_trap(struct user_regs_struct *r)
{
	r->rip--;
	return true;
}

void guise_isa_continue(ucontext_t *uc, const struct user_regs_struct *r)
{
	greg_t *g = uc->uc_mcontext.gregs;

	g[REG_R8] = (greg_t)r->r8;
	g[REG_R9] = (greg_t)r->r9;
	g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11;
	g[REG_R12] = (greg_t)r->r12;
	g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14;
	g[REG_R15] = (greg_t)r->r15;
	g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi;
	g[REG_RBP] = (greg_t)r->rbp;
	g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx;
	g[REG_RAX] = (greg_t)r->rax;
	g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp;
	g[REG_RIP] = (greg_t)r->rip;
	g[REG_EFL] = (greg_t)((r->eflags & FLAGS) | ((uint64_t)g[REG_EFL] & ~FLAGS));
}

bool guise_isa_frame(struct user_regs_struct *r, const void *frame)
{
	gregset_t g;

	memcpy(g, frame, sizeof(g));
	if (((uint64_t)g[REG_CSGSFS] & 0xffff) != USER_CODE)
		return false;
	r->r8 = (uint64_t)g[REG_R8];
	r->r9 = (uint64_t)g[REG_R9];
	r->r10 = (uint64_t)g[REG_R10];
	r->r11 = (uint64_t)g[REG_R11];
	r->r12 = (uint64_t)g[REG_R12];
	r->r13 = (uint64_t)g[REG_R13];
	r->r14 = (uint64_t)g[REG_R14];
	r->r15 = (uint64_t)g[REG_R15];
	r->rdi = (uint64_t)g[REG_RDI];
	r->rsi = (uint64_t)g[REG_RSI];
	r->rbp = (uint64_t)g[REG_RBP];
	r->rbx = (uint64_t)g[REG_RBX];
	r->rdx = (uint64_t)g[REG_RDX];
	r->rax = (uint64_t)g[REG_RAX];
	r->rcx = (uint64_t)g[REG_RCX];
	r->rsp = (uint64_t)g[REG_RSP];
	r->rip = (uint64_t)g[REG_RIP];
	r->eflags = (uint64_t)g[REG_EFL];
	return true;
}

#endif
