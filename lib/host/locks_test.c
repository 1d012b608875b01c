// SPDX-License-Identifier: GPL-2.0-only
/* Locks of guise's own, beside threads, handlers and children, without a stack. */
#include "host/locks.h"

#include "host/sys.h"
#include "test/tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  20000

static int inside, together, begun_times;
static volatile sig_atomic_t handled, handled_inside;

static void handle(int sig)
{
	(void)sig;
	handled++;
	handled_inside += guise_own_locked();
}

static void *take_turns(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		guise_own_lock(0);
		together += __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED) != 1;
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		guise_own_unlock(0);
	}
	return NULL;
}

static void under_threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, take_turns, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap(!together, "one thread at a time has a lock");
}

static void under_signals(void)
{
	sigset_t set, now;

	signal(SIGUSR1, handle);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	guise_own_lock(0);
	raise(SIGUSR1);
	guise_own_lock(1);
	tap(guise_own_mask() == 1ul << (SIGUSR2 - 1), "what was blocked before is known");
	guise_own_unlock(1);
	tap(!handled && guise_own_locked(), "no handler runs under a lock");
	guise_own_unlock(0);
	tap(handled == 1 && !handled_inside && !guise_own_locked(), "it runs behind the last");
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	tap(sigismember(&now, SIGUSR2) == 1 && !sigismember(&now, SIGUSR1),
	    "and the thread has blocked what it had blocked");
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void out_of_order(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		guise_own_lock(1);
		guise_own_lock(0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	tap(WIFSIGNALED(status), "a program that takes locks out of order ends");
}

static bool begun;

static void begin(void)
{
	begun_times++;
}

static void *begin_once(void *unused)
{
	(void)unused;
	guise_own_once(2, &begun, begin);
	return NULL;
}

static void once(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, begin_once, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap(begun_times == 1, "what happens once happens once");
}

static int ready[2], done[2];

static void *hold(void *unused)
{
	char c = 0;

	(void)unused;
	guise_own_lock(3);
	if (write(ready[1], &c, 1) != 1 || read(done[0], &c, 1) != 1)
		abort();
	guise_own_unlock(3);
	return NULL;
}

/* Ends the child when it hangs, and is seen to. */
static bool child_takes(pid_t pid, unsigned int number)
{
	int status = 1;

	if (pid)
		return waitpid(pid, &status, 0) == pid && !status;
	alarm(20);
	guise_own_lock(number);
	guise_own_unlock(number);
	_exit(0);
}

/* Made by a call of the host's kernel that nobody else sees. */
static pid_t raw_fork(void)
{
	return (pid_t)host_sys(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void in_children(void)
{
	pthread_t thread;
	char c = 0;

	if (pipe(ready) || pipe(done))
		abort();
	pthread_create(&thread, NULL, hold, NULL);
	if (read(ready[0], &c, 1) != 1)
		abort();
	tap(child_takes(raw_fork(), 3), "a child has no lock of its parent's other thread");
	if (write(done[1], &c, 1) != 1)
		abort();
	pthread_join(thread, NULL);
	guise_own_lock(3);
	tap(child_takes(raw_fork(), 4), "nor of the thread that made it");
	guise_own_unlock(3);
}

static void in_a_fork(void)
{
	pid_t pid;

	guise_own_fork_prepare();
	guise_own_fork_prepare();
	guise_own_lock(5); /* a handler of another library, which runs now */
	guise_own_unlock(5);
	pid = raw_fork();
	if (!pid) {
		bool same = *guise_own_word();

		alarm(20);
		guise_own_fork_child();
		guise_own_fork_child();
		guise_own_lock(5);
		guise_own_unlock(5);
		_exit(same || !*guise_own_word() || guise_own_locked());
	}
	guise_own_fork_parent();
	tap(guise_own_locked(), "a thread that forks has all locks");
	guise_own_fork_parent();
	tap(!guise_own_locked() && child_takes(pid, 0), "until it is done, in both");
	pid = raw_fork();
	if (!pid)
		_exit(*guise_own_word() != 0);
	tap(child_takes(pid, 0), "a child that nobody saw is told from its parent");
}

int main(void)
{
	under_threads();
	under_signals();
	out_of_order();
	once();
	in_children();
	in_a_fork();
	return tap_end();
}
