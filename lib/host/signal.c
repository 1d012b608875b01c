// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host signals and threads inside a stack.
 *
 * A program's handler must not run while its thread is inside: it would run on
 * a kernel stack, and a call it makes would wait for the virtual CPU that its
 * own thread holds. So guise's handler stands before the program's. Inside, it
 * blocks the signal for the thread, sends it again, and wakes the thread if it is
 * waiting; outside, it calls the program's handler. When the thread has left
 * the stack the signals are unblocked, so that the host's kernel delivers them with
 * their own siginfo, mask and alternate stack.
 *
 * SIGSEGV and SIGBUS go here first in any case: a fault inside the image's
 * guarded copies is a bad user pointer, and continues at their fix-up.
 *
 * So is SIGSYS once a trap for system calls is set (preload/raw/trap.c). While a
 * handler runs none of the three is blocked.
 *
 * What cannot be blocked is kept here meanwhile, up to 8 signals: these three, when
 * they were sent and are no faults, and all in a sandbox, where nothing may be sent. So it is
 * while the thread has a lock of guise's own (locks.c).
 *
 * Limits: only handlers installed by guise_signal_action() are held (the
 * preload library routes sigaction and signal here).
 */
#include "host/signal.h"

#include "host/locks.h"
#include "host/probe.h"
#include "host/sys.h"
#include "isa/isa.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define HELD_MAX        8
#define KERNEL_SIGSET   8 /* bytes of a signal set in system calls */
#define KERNEL_SIGRTMIN 32

struct held {
	int sig;
	siginfo_t info;
};

__thread struct guise_signals guise_signals __attribute__((tls_model("initial-exec")));
static __thread struct held held[HELD_MAX] __attribute__((tls_model("initial-exec")));
static __thread bool repairing __attribute__((tls_model("initial-exec")));
static __thread int kept __attribute__((tls_model("initial-exec")));
static __thread unsigned long blocked __attribute__((tls_model("initial-exec")));

#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2 /* si_code of SIGSYS, since Linux 5.11 */
#endif

static bool (*trap)(siginfo_t *info, ucontext_t *uc);
static struct sigaction program[NSIG];
static bool sandboxed;
static const struct guise_signal_stacks *stacks; /* NULL: this process has none yet */

static void handler(int sig, siginfo_t *info, void *context);

typedef int action_function(int sig, const struct sigaction *act, struct sigaction *old);
static action_function *next_action, *libc_action;

/* Not under a lock: the loader has one, under which constructors may come here. */
static bool find_real(void)
{
	void *handle;

	if (__atomic_load_n(&next_action, __ATOMIC_ACQUIRE))
		return true;
	handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	libc_action = handle ? (action_function *)dlsym(handle, "sigaction") : NULL;
	__atomic_store_n(&next_action, (action_function *)dlsym(RTLD_NEXT, "sigaction"),
			 __ATOMIC_RELEASE);
	return next_action;
}

/*
 * In a preloaded program the plain name is guise's hook. The next one may be a
 * sanitizer's, which calls the handler from its own. Not so for SIGSYS: their
 * handler blocks all signals and makes calls that are trapped in turn.
 */
static int guise_real_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (!find_real()) {
		errno = ENOSYS;
		return -1;
	}
	return sig == SIGSYS && libc_action ? libc_action(sig, act, old)
					    : next_action(sig, act, old);
}

/* A fault in a probe of memory, or in what the stacks guard, is repaired. */
static bool repair(ucontext_t *uc)
{
	unsigned long *pc = guise_isa_counter(uc);
	uintptr_t fixup = guise_probe_fixup(*pc);

	if (!fixup && stacks)
		fixup = stacks->fixup(*pc);
	if (fixup)
		*pc = fixup;
	return fixup;
}

static bool send_to_self(int sig, const siginfo_t *info)
{
	return !host_sys(SYS_rt_tgsigqueueinfo, host_sys(SYS_getpid), host_sys(SYS_gettid), sig,
			 info);
}

/*
 * Sends a signal again that is blocked. Of realtime ones several may be queued, in their
 * order: those that came after it are taken out and sent again behind it. A mark says
 * which was the last of them.
 */
static void send_again(int sig, const siginfo_t *info)
{
	unsigned long set = 1ul << (sig - 1);
	siginfo_t mark = { .si_signo = sig, .si_code = SI_QUEUE }, next;
	const struct timespec at_once = { 0 };

	mark.si_ptr = held;
	if (sig >= KERNEL_SIGRTMIN && send_to_self(sig, &mark)) {
		send_to_self(sig, info);
		while (host_sys(SYS_rt_sigtimedwait, &set, &next, &at_once, KERNEL_SIGSET) == sig &&
		       (next.si_code != SI_QUEUE || next.si_ptr != held))
			send_to_self(sig, &next);
	} else if (!send_to_self(sig, info)) {
		host_sys(SYS_tgkill, host_sys(SYS_getpid), host_sys(SYS_gettid), sig);
	}
}

static void hold(int sig, siginfo_t *info, ucontext_t *uc)
{
	unsigned long bit = 1ul << (sig - 1);

	if (!sandboxed && !(bit & GUISE_UNBLOCKED)) {
		/* All of them: the kernel may have begun several handlers at once, and the
		 * mask of this one's frame does not know of those above it. */
		blocked |= bit;
		*(unsigned long *)&uc->uc_sigmask |= blocked;
		send_again(sig, info);
	} else if (kept < HELD_MAX) {
		held[kept].sig = sig;
		held[kept].info = *info;
		kept++;
	}
	guise_signals.deferred = 1;
	if (stacks)
		stacks->wake();
}

/* What the host would do without a handler. */
static void default_action(int sig)
{
	struct sigaction dfl;
	sigset_t set;

	memset(&dfl, 0, sizeof(dfl));
	dfl.sa_handler = SIG_DFL;
	guise_real_sigaction(sig, &dfl, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	host_sys(SYS_tgkill, host_sys(SYS_getpid), host_sys(SYS_gettid), sig);
	host_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, KERNEL_SIGSET);
}

/* SA_RESETHAND: the host's kernel need not know of it before the handler runs. */
static void reset_action(int sig)
{
	program[sig].sa_handler = SIG_DFL;
	if (!sandboxed && sig != SIGSEGV && sig != SIGBUS && (sig != SIGSYS || !trap))
		guise_real_sigaction(sig, &program[sig], NULL);
}

/* The program ends by the signal; this is why, as far as can be known. */
static void end_of_spoilt(int sig)
{
	static const char text[] =
		"guise: a call of this program's into its stack has met memory that is not "
		"there or makes no sense: the program has unmapped or overwritten memory of its "
		"stack, or guise has a fault of its own\n";

	if (!sandboxed)
		host_sys(SYS_write, STDERR_FILENO, text, sizeof(text) - 1);
	default_action(sig);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	struct sigaction act;
	int saved = errno;

	if (sig == SIGSYS && info->si_code == SYS_USER_DISPATCH && trap && trap(info, context))
		return;
	if ((sig == SIGSEGV || sig == SIGBUS) && info->si_code > 0) {
		bool repaired;

		if (repairing) /* what a repair looks at is not there either */
			end_of_spoilt(sig);
		repairing = true;
		repaired = repair(context);
		repairing = false;
		if (repaired)
			return;
		/* No handler of the program's could go on from inside. */
		if (guise_signals.inside || (program[sig].sa_handler == SIG_DFL && stacks &&
					     stacks->has((uintptr_t)info->si_addr)))
			end_of_spoilt(sig);
	} else if (guise_signals.inside || guise_own_locked()) {
		hold(sig, info, context);
		errno = saved;
		return;
	}
	act = program[sig];
	if (act.sa_flags & (int)SA_RESETHAND)
		reset_action(sig);
	if (!(act.sa_flags & SA_RESTART))
		guise_signals.ending = 1;
	if (act.sa_flags & SA_NODEFER && !sandboxed && !sigismember(&act.sa_mask, sig)) {
		unsigned long bit = 1ul << (sig - 1);

		host_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, NULL, KERNEL_SIGSET);
	}
	if (act.sa_handler == SIG_DFL)
		default_action(sig);
	else if (act.sa_handler == SIG_IGN)
		;
	else if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(sig, info, context);
	else
		act.sa_handler(sig);
}

int guise_signal_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	bool fault = sig == SIGSEGV || sig == SIGBUS || (sig == SIGSYS && trap);
	struct sigaction was, mine, given;
	int ret;

	if (sig < 1 || sig >= NSIG || sig == SIGKILL || sig == SIGSTOP || !find_real())
		return guise_real_sigaction(sig, act, old);
	/* A bad pointer is found here, with no lock held. */
	if (act)
		given = *act;
	guise_own_lock(GUISE_LOCK_SIGNALS);
	ret = guise_real_sigaction(sig, NULL, &was);
	if (ret)
		goto out;
	if (was.sa_sigaction == handler)
		was = program[sig];
	if (act) {
		mine = given;
		if (fault || (given.sa_handler != SIG_DFL && given.sa_handler != SIG_IGN)) {
			mine.sa_sigaction = handler;
			mine.sa_flags |= SA_SIGINFO;
			/* It resets and unblocks by itself: not while the thread is inside. */
			mine.sa_flags &= ~((int)SA_RESETHAND | SA_NODEFER);
			if (fault)
				mine.sa_flags |= SA_NODEFER;
			/* For SIGSYS the program's own runs where it would without us. */
			if (fault && (sig != SIGSYS || given.sa_handler == SIG_DFL ||
				      given.sa_handler == SIG_IGN))
				mine.sa_flags |= SA_ONSTACK;
			*(unsigned long *)&mine.sa_mask &= ~GUISE_UNBLOCKED;
		}
		program[sig] = given;
		ret = guise_real_sigaction(sig, &mine, NULL);
	}
out:
	guise_own_unlock(GUISE_LOCK_SIGNALS);
	if (!ret && old)
		*old = was;
	return ret;
}

int guise_fault_handler(const struct guise_signal_stacks *of)
{
	static const int faults[] = { SIGSEGV, SIGBUS };
	struct sigaction act;
	unsigned int i;

	__atomic_store_n(&stacks, of, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++) {
		if (guise_real_sigaction(faults[i], NULL, &act))
			return -errno;
		if (act.sa_sigaction == handler)
			continue;
		if (guise_signal_action(faults[i], &act, NULL))
			return -errno;
	}
	return 0;
}

int guise_signal_trap(bool (*function)(siginfo_t *info, ucontext_t *uc))
{
	struct sigaction act;

	if (guise_signal_action(SIGSYS, NULL, &act))
		return -errno;
	trap = function;
	return guise_signal_action(SIGSYS, &act, NULL) ? -errno : 0;
}

bool guise_signals_restart(void)
{
	for (int i = 0; i < kept; i++)
		if (!(program[held[i].sig].sa_flags & SA_RESTART))
			return false;
	for (int sig = 1; sig < NSIG; sig++)
		if (blocked & 1ul << (sig - 1) && !(program[sig].sa_flags & SA_RESTART))
			return false;
	return true;
}

void guise_signals_sandbox(void)
{
	/* What it was that the program did not set itself. */
	if (program[SIGPIPE].sa_handler == SIG_DFL)
		guise_real_sigaction(SIGPIPE, NULL, &program[SIGPIPE]);
	sandboxed = true;
}

/* The program's handler; without a mask, and with an empty context. */
static void call_handler(int sig, siginfo_t *info)
{
	struct sigaction act = program[sig];
	ucontext_t nothing;

	if (act.sa_handler == SIG_IGN || act.sa_handler == SIG_DFL)
		return;
	if (act.sa_flags & (int)SA_RESETHAND)
		reset_action(sig);
	if (!(act.sa_flags & SA_SIGINFO)) {
		act.sa_handler(sig);
		return;
	}
	memset(&nothing, 0, sizeof(nothing));
	act.sa_sigaction(sig, info, &nothing);
}

void guise_signal_raise(int sig)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_USER };

	if (sandboxed && program[sig].sa_handler != SIG_DFL) {
		call_handler(sig, &info);
		return;
	}
	if (!sandboxed) {
		info.si_pid = (pid_t)host_sys(SYS_getpid);
		info.si_uid = (uid_t)host_sys(SYS_getuid);
	}
	if (sandboxed || !send_to_self(sig, &info))
		host_sys(SYS_tgkill, host_sys(SYS_getpid), host_sys(SYS_gettid), sig);
}

void guise_signals_deliver(void)
{
	unsigned long set = blocked;
	struct held copy[HELD_MAX];
	int n = kept;

	if (!guise_signals.deferred || guise_signals.inside || guise_own_locked())
		return;
	/* Those that come meanwhile are held, too, or are handled at once. */
	memcpy(copy, held, (size_t)n * sizeof(*held));
	kept = 0;
	blocked = 0;
	guise_signals.deferred = 0;
	for (int i = 0; i < n; i++) {
		if (sandboxed)
			call_handler(copy[i].sig, &copy[i].info);
		else
			send_to_self(copy[i].sig, &copy[i].info);
	}
	if (set)
		host_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, KERNEL_SIGSET);
}
