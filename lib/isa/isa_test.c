// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library knows of this processor: that errno stays as it is at a system call, that the
 * registers of an interrupted thread are found in the frame of its handler, and that the thread
 * goes on where they are set to.
 */
#include "isa/isa.h"

#include "host/sys.h"
#include "test/tap.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#define BELOW 1024 /* bytes: what the interrupted functions have on the stack stays */

static sigjmp_buf back;
static int found;

/* Begins with nothing but a stack, as a function does. */
static void go_on(void)
{
	siglongjmp(back, 1);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const uint64_t ip = *guise_isa_counter(uc), here = (uintptr_t)&sig;
	struct user_regs_struct registers, r = { 0 };

	(void)info;
	for (size_t at = 0; at + guise_isa_frame_size <= sizeof(*uc); at += 8)
		if (guise_isa_frame(&r, (const char *)uc + at) && guise_isa_ip(&r) == ip &&
		    guise_isa_sp(&r) > here) {
			found++;
			registers = r;
		}
	if (found != 1)
		return;
	guise_isa_set_ip(&registers, (uintptr_t)go_on);
	/* As behind a call on x86-64; arm64 wants it on 16. */
	guise_isa_set_sp(&registers, ((guise_isa_sp(&registers) - BELOW) & ~15ull) -
					     (guise_isa_machine == EM_X86_64 ? 8 : 0));
	guise_isa_continue(uc, &registers);
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	errno = 77;
	tap(host_sys(SYS_close, -1) == -EBADF && errno == 77, "an error of the host, not in errno");
	tap(host_sys(SYS_getpid) == getpid(), "a result");
	tap(!guise_isa_probe_read((uintptr_t)&found) && !guise_isa_probe_write((uintptr_t)&found),
	    "probes of memory that is there");
	sigaction(SIGUSR1, &act, NULL);
	if (!sigsetjmp(back, 1)) {
		raise(SIGUSR1);
		tap(false, "the thread goes on elsewhere");
		return tap_end();
	}
	tap(found == 1, "the registers are found in the frame of a handler, once");
	tap(true, "the thread goes on elsewhere");
	return tap_end();
}
