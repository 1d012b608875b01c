// SPDX-License-Identifier: GPL-2.0-only
/*
 * What asynchronous calls share: getaddrinfo_a (asynchronous.c) and POSIX AIO
 * (aio.c). libc's own would work inside libc, past every hook; here threads of
 * guise's own make the calls that a program would make.
 *
 * Threads that wait for requests stand in a list, each with a semaphore. When a request is
 * done all the semaphores are posted, and each thread looks whether it waited for that
 * request. To wait for a semaphore behaves like waiting in libc: it is a cancellation
 * point, and the handler of a signal ends it.
 *
 * A forked child has none of the threads. Requests of its parent are never done there.
 */
#include "preload/wait/completion.h"
#include "host/sys.h"
#include "preload/locks.h"
#include "preload/preload.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

struct waiter {
	struct waiter *next;
	sem_t news;
};

static struct waiter *waiters;

void preload_completion_forked(void)
{
	waiters = NULL;
	completion_aio_forked();
}

void completion_lock(void)
{
	guise_own_lock(PRELOAD_LOCK_COMPLETION);
}

void completion_unlock(void)
{
	guise_own_unlock(PRELOAD_LOCK_COMPLETION);
}

void completion_tell(void)
{
	for (struct waiter *w = waiters; w; w = w->next)
		sem_post(&w->news);
}

static void leave(void *memory)
{
	struct waiter *me = memory, **at = &waiters;

	while (*at != me)
		at = &(*at)->next;
	*at = me->next;
	sem_destroy(&me->news);
}

/* The thread is cancelled. */
static void leave_unlocked(void *memory)
{
	completion_lock();
	leave(memory);
	completion_unlock();
}

int completion_wait(bool (*over)(const void *const list[], int n), const void *const list[], int n,
		    const struct timespec *timeout)
{
	struct waiter me = { .next = waiters };
	struct timespec until = { 0 };
	volatile int err = 0;

	if (timeout) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += timeout->tv_sec + (until.tv_nsec + timeout->tv_nsec) / 1000000000;
		until.tv_nsec = (until.tv_nsec + timeout->tv_nsec) % 1000000000;
	}
	sem_init(&me.news, 0, 0);
	waiters = &me;
	while (!err && !over(list, n)) {
		completion_unlock();
		pthread_cleanup_push(leave_unlocked, &me);
		if (timeout ? sem_clockwait(&me.news, CLOCK_MONOTONIC, &until) : sem_wait(&me.news))
			err = errno;
		pthread_cleanup_pop(0);
		completion_lock();
	}
	leave(&me);
	return err;
}

int completion_thread(void *(*function)(void *), void *argument, const pthread_attr_t *given)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int err;

	if (given)
		return pthread_create(&thread, given, function, argument);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setsigmask_np(&attr, &all);
	err = pthread_create(&thread, &attr, function, argument);
	pthread_attr_destroy(&attr);
	return err;
}

static void *call_function(void *memory)
{
	struct sigevent event = *(struct sigevent *)memory;
	sigset_t none;

	free(memory);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	event.sigev_notify_function(event.sigev_value);
	return NULL;
}

int completion_notify(const struct sigevent *event, int code)
{
	struct sigevent *copy;
	siginfo_t info;
	int err;

	if (event->sigev_notify == SIGEV_SIGNAL) {
		memset(&info, 0, sizeof(info));
		info.si_signo = event->sigev_signo;
		info.si_code = code;
		info.si_pid = preload.pid;
		info.si_uid = getuid();
		info.si_value = event->sigev_value;
		return (int)libc_result(
			host_sys(SYS_rt_sigqueueinfo, preload.pid, event->sigev_signo, &info));
	}
	if (event->sigev_notify != SIGEV_THREAD)
		return 0;
	copy = malloc(sizeof(*copy));
	if (copy) {
		*copy = *event;
		err = completion_thread(call_function, copy, event->sigev_notify_attributes);
		if (!err)
			return 0;
		free(copy);
		errno = err;
	}
	return -1;
}
