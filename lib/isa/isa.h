/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What guise's library must know of a processor: all of it stands here, and a
 * processor is one file beside this one. (What the kernel image must know of it is
 * linux/arch/guise/kernel/isa_*.S, and what the preload library must know,
 * preload/isa/.)
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

/* x86-64: a system call instruction with a return behind it, by which it makes them all. */
extern void *host_sys_gate;

/* ELF: of this processor's programs (EM_*), and "add the base" (R_*_RELATIVE). */
extern const unsigned int guise_isa_machine, guise_isa_relative;

/* In a loop that waits for another thread. */
void guise_isa_relax(void);

/* Where the thread that a signal has interrupted goes on. */
unsigned long *guise_isa_counter(ucontext_t *uc);

/*
 * Probes of one byte: 0. One whose byte is not there faults between begin and end, and
 * goes on at failed: 1. Writing leaves the byte's value.
 */
int guise_isa_probe_read(uintptr_t address);
int guise_isa_probe_write(uintptr_t address);
extern char guise_isa_probe_begin[], guise_isa_probe_end[], guise_isa_probe_failed[];

/* The registers of a thread as ptrace(2) gives them (PTRACE_GETREGSET, NT_PRSTATUS). */
uint64_t guise_isa_ip(const struct user_regs_struct *r);
uint64_t guise_isa_sp(const struct user_regs_struct *r);
void guise_isa_set_ip(struct user_regs_struct *r, uint64_t to);
void guise_isa_set_sp(struct user_regs_struct *r, uint64_t to);
/* In one of the image's copies: the fix-up tries no byte of it again. */
void guise_isa_end_copy(struct user_regs_struct *r);
/* Back to the instruction that raised SIGTRAP; false: it is there already. */
bool guise_isa_before_trap(struct user_regs_struct *r);
/* From a handler's return on, the thread has these general registers. */
void guise_isa_continue(ucontext_t *uc, const struct user_regs_struct *r);

/*
 * The frame of a handler, on a stack: its registers lie in so many bytes, on 8. True when
 * these can be such registers: r has them.
 */
extern const size_t guise_isa_frame_size;
bool guise_isa_frame(struct user_regs_struct *r, const void *frame);

#endif
