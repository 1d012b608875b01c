/* SPDX-License-Identifier: GPL-2.0-only */
/* Host signals and threads inside a stack. */
#ifndef GUISE_HOST_SIGNAL_H
#define GUISE_HOST_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * As sigaction(2), for a program whose handlers must not run inside a stack:
 * they are called by guise's own handler, which holds back what arrives while
 * the thread is inside.
 */
int guise_signal_action(int sig, const struct sigaction *act, struct sigaction *old);

/* What the handlers ask of this process's stacks. */
struct guise_signal_stacks {
	/* Where a fault at this instruction goes on: the fix-up of a guarded copy, or 0. */
	uintptr_t (*fixup)(uintptr_t pc);
	/* A signal is held: should the thread be about to sleep in a stack, it does not. */
	void (*wake)(void);
	/* Whether an address is in the memory of a stack. */
	bool (*has)(uintptr_t address);
};

/* Installs the handler that turns bad user pointers into EFAULT. */
int guise_fault_handler(const struct guise_signal_stacks *of);

/* From now on function is asked first what a trapped system call means (SIGSYS
 * of syscall user dispatch); false: it is the program's. 0 or -errno. */
int guise_signal_trap(bool (*function)(siginfo_t *info, ucontext_t *uc));

/* What guise needs of the host's kernel in every thread, so that no mask of the
 * program may block it: as a set of the kernel's. */
#define GUISE_UNBLOCKED (1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGSYS - 1))

struct guise_signals {
	volatile int inside;
	volatile int deferred; /* how many wait */
	volatile int ending;   /* a handler without SA_RESTART has run: restarts nothing */
};
extern __thread struct guise_signals guise_signals __attribute__((tls_model("initial-exec")));

static inline void guise_inside_enter(void)
{
	guise_signals.inside++;
	__asm__ volatile("" ::: "memory");
}

static inline void guise_inside_leave(void)
{
	__asm__ volatile("" ::: "memory");
	guise_signals.inside--;
}

static inline bool guise_signals_deferred(void)
{
	return guise_signals.deferred != 0;
}

/* From now on signals are held and handled without system calls (a program in a sandbox). */
void guise_signals_sandbox(void);
/* A signal to this thread, as the host's kernel would send it on a call of its own. */
void guise_signal_raise(int sig);

/* All held signals have SA_RESTART. */
bool guise_signals_restart(void);
/* Lets the held signals' handlers run now. */
void guise_signals_deliver(void);

#endif
