/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything in libguise that depends on the processor. Each processor has one file
 * beside this one. (The kernel image has linux/arch/guise/kernel/isa_*.S for that, and
 * the preload library preload/isa/.)
 */
#ifndef GUISE_ISA_ISA_H
#define GUISE_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>
#include <ucontext.h>

/* A system call of the host: its result, or -errno. errno stays as it is. */
long host_sys6(long nr, long a, long b, long c, long d, long e, long f);

/* x86-64: the address of a system call instruction and a return, which makes all calls. */
extern void *host_sys_gate;

/* ELF: of this processor's programs (EM_*), and "add the base" (R_*_RELATIVE). */
extern const unsigned int guise_isa_machine, guise_isa_relative;

/* In a loop that waits for another thread. */
void guise_isa_relax(void);

/* Where the thread that a signal has interrupted will continue. */
unsigned long *guise_isa_counter(ucontext_t *uc);

/*
 * Probes of one byte return 0. If the byte cannot be used, the probe faults between begin
 * and end, continues at failed, and returns 1. Writing does not change the byte's value.
 */
int guise_isa_probe_read(uintptr_t address);
int guise_isa_probe_write(uintptr_t address);
extern char guise_isa_probe_begin[], guise_isa_probe_end[], guise_isa_probe_failed[];

/* The registers of a thread as ptrace(2) gives them (PTRACE_GETREGSET, NT_PRSTATUS). */
uint64_t guise_isa_ip(const struct user_regs_struct *r);
uint64_t guise_isa_sp(const struct user_regs_struct *r);
void guise_isa_set_ip(struct user_regs_struct *r, uint64_t to);
void guise_isa_set_sp(struct user_regs_struct *r, uint64_t to);
/* For a thread in one of the image's copies: makes the fix-up try no byte again. */
void guise_isa_end_copy(struct user_regs_struct *r);
/* Sets the thread back to the instruction that raised SIGTRAP; false: it is there already. */
bool guise_isa_before_trap(struct user_regs_struct *r);
/* Sets the general registers that the thread will have when the handler returns. */
void guise_isa_continue(ucontext_t *uc, const struct user_regs_struct *r);

/*
 * The registers in the frame of a handler, on a stack, have so many bytes and are aligned
 * to 8. Copies those at frame to r; true if they can be the registers of a program.
 */
extern const size_t guise_isa_frame_size;
bool guise_isa_frame(struct user_regs_struct *r, const void *frame);

#endif
