/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_ASM_GUISE_PTRACE_H
#define _UAPI_ASM_GUISE_PTRACE_H

/* There is no user mode whose registers could be saved. */
struct user_regs_struct {
	unsigned long none;
};

#endif
