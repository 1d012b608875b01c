/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests that threads work on while the program goes on; see completion.c. */
#ifndef GUISE_PRELOAD_COMPLETION_H
#define GUISE_PRELOAD_COMPLETION_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* The lock under which the results of all requests are read and written. */
void completion_lock(void);
void completion_unlock(void);
/* A request is done: all waiting threads look again. To be called under the lock. */
void completion_tell(void);
/*
 * Waits until over(list, n) is true. The caller holds the lock, and so does this function when
 * it calls over(). 0, ETIMEDOUT or EINTR. A cancellation point; a thread that is cancelled here
 * no longer holds the lock.
 */
int completion_wait(bool (*over)(const void *const list[], int n), const void *const list[], int n,
		    const struct timespec *timeout);
/* Notifies the program as event says; a signal gets this code. -1 with errno on failure. */
int completion_notify(const struct sigevent *event, int code);
/* Starts a thread in which no handler of the program runs: 0 or an error. */
int completion_thread(void *(*function)(void *), void *argument, const pthread_attr_t *given);
/* aio.c: to be called in a forked child, which has none of the threads. */
void completion_aio_forked(void);

#endif
