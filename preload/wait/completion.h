/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests that threads work on while the program goes on; see completion.c. */
#ifndef GUISE_PRELOAD_COMPLETION_H
#define GUISE_PRELOAD_COMPLETION_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* What all requests have come to is looked at and changed under one lock. */
void completion_lock(void);
void completion_unlock(void);
/* A request is done: whoever waits looks again. Under the lock. */
void completion_tell(void);
/*
 * Waits until over(list, n), which is asked under the lock; the caller holds it. 0, ETIMEDOUT or
 * EINTR. A cancellation point, which gives up the lock.
 */
int completion_wait(bool (*over)(const void *const list[], int n), const void *const list[], int n,
		    const struct timespec *timeout);
/* Says so as the caller wished: a signal has this code. -1 with errno if that cannot be. */
int completion_notify(const struct sigevent *event, int code);
/* A thread that takes none of the program's signals: 0 or an error. */
int completion_thread(void *(*function)(void *), void *argument, const pthread_attr_t *given);
/* aio.c: in a forked child, which has none of its threads. */
void completion_aio_forked(void);

#endif
