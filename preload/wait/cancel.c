// SPDX-License-Identifier: GPL-2.0-only
/*
 * pthread_cancel of a thread that waits in the stack, or that may be cancelled
 * anywhere.
 *
 * libc wakes a thread only in its own cancellation points; one that waits in
 * the stack would sleep on. So it is sent a signal as well, for which guise
 * has a handler. Inside the stack the signal is held back, which ends the
 * wait (host/signal.c). When the handler runs the thread is outside, and the handler is
 * a cancellation point if the interrupted call is one. A call that waits declares itself
 * one before it tests for a cancellation, and until it returns, so that a cancellation
 * between the test and the wait is not missed.
 *
 * The signal is one that the program does not handle and that does nothing by
 * default: SIGURG, or else SIGWINCH. With handlers for both, a thread ends at
 * its next call only.
 *
 * A thread that asks for asynchronous cancellation (iperf3's do) must not end
 * inside the stack, where it may hold the virtual CPU or a leader's place. So
 * libc never hears of it: to libc cancellation stays deferred, and the handler is
 * a cancellation point wherever the thread is, except inside the stack. Such a thread
 * ends late if it blocks the signal.
 */
#include "preload/wait/cancel.h"

#include "host/signal.h"
#include "region/stack.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

__thread bool preload_cancellable __attribute__((tls_model("initial-exec")));
static __thread bool asynchronous __attribute__((tls_model("initial-exec")));
static bool some_asynchronous; /* a thread has asked for it, once */

/* AddressSanitizer does not see that a cancelled thread leaves the functions that it is in: what it
 * knows of their stack is taken back before. */
static void leave_functions(void)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_handle_no_return();
#endif
}

static void end_if_cancelled(void)
{
	leave_functions();
	pthread_testcancel();
}

static void wake(int sig)
{
	(void)sig;
	if (preload_cancellable || asynchronous)
		end_if_cancelled();
}

/* The signal to wake with, its handler installed; 0 if there is none. */
static int wake_signal(void)
{
	static const int quiet[] = { SIGURG, SIGWINCH };
	struct sigaction now, mine = { .sa_handler = wake, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
		if (sigaction(quiet[i], NULL, &now))
			continue;
		if (now.sa_handler == wake)
			return quiet[i];
		if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
			continue;
		if (!sigaction(quiet[i], &mine, NULL))
			return quiet[i];
	}
	return 0;
}

/* Whether the thread has ever been in the stack. */
static bool uses_stack(pthread_t thread)
{
	const struct guise_stack *s = preload.stack;
	clockid_t clock;
	pid_t tid;

	if (!s || pthread_getcpuclockid(thread, &clock))
		return false;
	if (s->served)
		return true;
	tid = ~(clock >> 3); /* how the kernel's interface numbers them */
	for (unsigned int i = 1; i < guise_slots_end(s); i++)
		if (s->slots[i].used == s->proc + 1 && s->slots[i].tid == tid)
			return true;
	return false;
}

HOOK int pthread_cancel(pthread_t thread)
{
	bool self = thread == pthread_self();
	bool woken = !self &&
		     (__atomic_load_n(&some_asynchronous, __ATOMIC_ACQUIRE) || uses_stack(thread));
	int saved = errno, ret, sig;

	ret = HOST(pthread_cancel)(thread);
	sig = woken && !ret ? wake_signal() : 0;
	if (sig)
		pthread_kill(thread, sig);
	if (self && asynchronous)
		end_if_cancelled();
	errno = saved;
	return ret;
}

HOOK int pthread_setcanceltype(int type, int *old)
{
	if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS)
		return EINVAL;
	if (old)
		*old = asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
	asynchronous = type == PTHREAD_CANCEL_ASYNCHRONOUS;
	if (asynchronous) {
		__atomic_store_n(&some_asynchronous, true, __ATOMIC_RELEASE);
		end_if_cancelled();
	}
	return 0;
}

HOOK int pthread_setcancelstate(int state, int *old)
{
	int ret = HOST(pthread_setcancelstate)(state, old);

	if (!ret && asynchronous && state == PTHREAD_CANCEL_ENABLE)
		end_if_cancelled();
	return ret;
}
