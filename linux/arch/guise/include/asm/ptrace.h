/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_GUISE_PTRACE_H
#define _ASM_GUISE_PTRACE_H

#include <uapi/asm/ptrace.h>

#ifndef __ASSEMBLY__
/* Says only whether a program was running when an interrupt came. */
struct pt_regs {
	unsigned long user;
};

#define user_mode(regs)           ((regs)->user != 0)
#define instruction_pointer(regs) 0UL
#define user_stack_pointer(regs)  0UL
#define profile_pc(regs)          0UL

static inline long regs_return_value(struct pt_regs *regs)
{
	return 0;
}
#endif

#endif
