// SPDX-License-Identifier: GPL-2.0-only
/* arm64; isa.h says what is what. */
#if defined(__aarch64__)

#include "isa/isa.h"

#include <elf.h>
#include <string.h>

#define FLAGS 0xf0000000ull /* of pstate: the conditions */
#define MODE  0x1full       /* of pstate: 0 in a program */

const unsigned int guise_isa_machine = EM_AARCH64;
const unsigned int guise_isa_relative = R_AARCH64_RELATIVE;
/* regs, sp, pc and pstate lie in mcontext_t as in user_regs_struct. */
const size_t guise_isa_frame_size = sizeof(struct user_regs_struct);
_Static_assert(offsetof(mcontext_t, pstate) - offsetof(mcontext_t, regs) ==
		       offsetof(struct user_regs_struct, pstate),
	       "guise_isa_frame() copies them");

__asm__(".text\n"
	".globl guise_isa_probe_begin, guise_isa_probe_read, guise_isa_probe_write\n"
	".globl guise_isa_probe_end, guise_isa_probe_failed\n"
	".hidden guise_isa_probe_begin, guise_isa_probe_read, guise_isa_probe_write\n"
	".hidden guise_isa_probe_end, guise_isa_probe_failed\n"
	"guise_isa_probe_begin:\n"
	"guise_isa_probe_read:\n"
	"	ldrb w1, [x0]\n"
	"	mov w0, #0\n"
	"	ret\n"
	"guise_isa_probe_write:\n"
	"1:	ldxrb w1, [x0]\n"
	"	stxrb w2, w1, [x0]\n"
	"	cbnz w2, 1b\n"
	"	mov w0, #0\n"
	"	ret\n"
	"guise_isa_probe_end:\n"
	"guise_isa_probe_failed:\n"
	"	mov w0, #1\n"
	"	ret\n");

long host_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}

void guise_isa_relax(void)
{
	__asm__ volatile("yield" ::: "memory");
}

unsigned long *guise_isa_counter(ucontext_t *uc)
{
	return (unsigned long *)&uc->uc_mcontext.pc;
}

uint64_t guise_isa_ip(const struct user_regs_struct *r)
{
	return r->pc;
}

uint64_t guise_isa_sp(const struct user_regs_struct *r)
{
	return r->sp;
}

void guise_isa_set_ip(struct user_regs_struct *r, uint64_t to)
{
	r->pc = to;
}

void guise_isa_set_sp(struct user_regs_struct *r, uint64_t to)
{
	r->sp = to;
}

/* BY_BYTE in isa_arm64.S. */
void guise_isa_end_copy(struct user_regs_struct *r)
{
	r->regs[5] = 2;
}

/* brk raises it while it is under way. */
bool guise_isa_before_trap(struct user_regs_struct *r)
{
	(void)r;
	return false;
}

void guise_isa_continue(ucontext_t *uc, const struct user_regs_struct *r)
{
	memcpy(uc->uc_mcontext.regs, r->regs, sizeof(r->regs));
	uc->uc_mcontext.sp = r->sp;
	uc->uc_mcontext.pc = r->pc;
	uc->uc_mcontext.pstate = (r->pstate & FLAGS) | (uc->uc_mcontext.pstate & ~FLAGS);
}

bool guise_isa_frame(struct user_regs_struct *r, const void *frame)
{
	memcpy(r, frame, sizeof(*r));
	return !(r->pstate & MODE);
}

#endif
