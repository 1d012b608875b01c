// SPDX-License-Identifier: GPL-2.0-only
/*
 * Locks of guise's own, and what they promise to programs that have threads, handle signals and
 * fork, all at any time.
 *
 * The rule:
 *
 *   - Every lock is one of those that are numbered here and in preload/locks.h; so is what is
 *     done once (guise_own_once()). lib/ and preload/ have no other mutexes, and no other flags
 *     that a thread waits for (test/build/test_rules.py looks for them).
 *   - A thread that holds one has all signals blocked, so that no handler of the program waits
 *     for a lock that its own thread holds. SIGSEGV, SIGBUS and SIGSYS must never be blocked:
 *     guise's handler holds them back until the lock is given up, unless they report that
 *     memory is not there.
 *   - They are taken in the order of their numbers. A thread that holds one may wait for the
 *     host's kernel, and for no other thread of the program: it looks up no name and receives
 *     nothing.
 *   - A thread that forks holds all of them. So what they guard is complete in the child, where
 *     all of them are free.
 *   - No call that moves data or waits needs one: to take and give one up costs two system
 *     calls.
 *
 * How they are free in a child: they lie in a page that the host's kernel clears in every child
 * with memory of its own (MADV_WIPEONFORK, Linux 4.14). On an older host the child of a fork
 * that guise sees clears it by itself. A child that shares its parent's memory (vfork) shares
 * the locks.
 *
 * Memory has its rule, too: memory.c.
 */
#include "host/locks.h"

#include "host/signal.h"
#include "host/sys.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE          65536 /* the largest of any host */
#define KERNEL_SIGSET 8     /* bytes of a signal set in system calls */

enum { FREE, TAKEN, WANTED }; /* a thread may sleep on it */

static struct words {
	uint32_t same; /* see guise_own_word() */
	uint32_t lock[GUISE_LOCKS];
} *page;
static struct words without_page;

static __thread uint32_t held __attribute__((tls_model("initial-exec"))); /* a bit for each */
static __thread unsigned long outside __attribute__((tls_model("initial-exec"))); /* mask */
static __thread unsigned int forking __attribute__((tls_model("initial-exec")));
static unsigned long fork_mask; /* the child may have another thread's storage */

_Static_assert(GUISE_LOCKS <= 32, "held has a bit for each lock");

/* Two threads may both make it: one of the pages counts. */
static struct words *words(void)
{
	struct words *w = __atomic_load_n(&page, __ATOMIC_ACQUIRE), *none = NULL;
	long at;

	if (w)
		return w;
	at = host_sys(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	w = (unsigned long)at > -4096UL ? &without_page : (struct words *)at;
	w->same = 1;
	if (w != &without_page)
		host_sys(SYS_madvise, w, PAGE, MADV_WIPEONFORK);
	if (__atomic_compare_exchange_n(&page, &none, w, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return w;
	if (w != &without_page)
		host_sys(SYS_munmap, w, PAGE);
	return none;
}

static void take(uint32_t *word)
{
	uint32_t now = FREE;

	if (__atomic_compare_exchange_n(word, &now, TAKEN, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(word, WANTED, __ATOMIC_ACQUIRE) != FREE)
		host_sys(SYS_futex, word, FUTEX_WAIT_PRIVATE, WANTED, NULL, NULL, 0);
}

static void release(uint32_t *word)
{
	if (__atomic_exchange_n(word, FREE, __ATOMIC_RELEASE) == WANTED)
		host_sys(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static unsigned long block_signals(void)
{
	unsigned long all = ~GUISE_UNBLOCKED, before = 0;

	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET);
	return before;
}

static void unblock_signals(unsigned long before)
{
	host_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SIGSET);
	guise_signals_deliver();
}

void guise_own_lock(unsigned int number)
{
	unsigned long before;

	if (forking)
		return;
	if (held >> number)
		__builtin_trap(); /* out of order: another thread may wait for this one */
	if (!held) {
		before = block_signals();
		outside = before;
	}
	held |= 1u << number;
	take(&words()->lock[number]);
}

void guise_own_unlock(unsigned int number)
{
	unsigned long before = outside;

	if (forking)
		return;
	release(&words()->lock[number]);
	held &= ~(1u << number);
	if (!held)
		unblock_signals(before);
}

bool guise_own_locked(void)
{
	return held || forking;
}

unsigned long guise_own_mask(void)
{
	return outside;
}

void guise_own_once(unsigned int number, bool *begun, void (*begin)(void))
{
	if (__builtin_expect(__atomic_load_n(begun, __ATOMIC_ACQUIRE), 1))
		return;
	guise_own_lock(number);
	if (!*begun) {
		begin();
		__atomic_store_n(begun, true, __ATOMIC_RELEASE);
	}
	guise_own_unlock(number);
}

void guise_own_fork_prepare(void)
{
	unsigned long before;

	if (forking) {
		forking++;
		return;
	}
	before = block_signals();
	forking = 1;
	for (unsigned int i = 0; i < GUISE_LOCKS; i++)
		take(&words()->lock[i]);
	fork_mask = before;
}

static void end_fork(void)
{
	unsigned long before = fork_mask;

	for (unsigned int i = GUISE_LOCKS; i--;)
		release(&words()->lock[i]);
	unblock_signals(before);
}

void guise_own_fork_parent(void)
{
	if (!--forking)
		end_fork();
}

void guise_own_fork_child(void)
{
	struct words *w = words();

	w->same = 1;
	if (!forking || !--forking)
		end_fork();
}

uint32_t *guise_own_word(void)
{
	return &words()->same;
}
