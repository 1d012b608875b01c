// SPDX-License-Identifier: GPL-2.0-only
/*
 * getaddrinfo_a: names that are looked up while the program goes on. libc's own
 * would look them up inside libc, over the host's stack.
 *
 * Each list of requests has a thread, which answers one after the other and
 * then says so as the caller wished. What a request has come to stands in the
 * field that libc keeps it in, so gai_error() is libc's own. A request that no
 * thread has begun with can be cancelled. Whoever waits is woken by any answer
 * and looks again.
 */
#include "preload.h"

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
	int n;
	struct sigevent event;
	struct gaicb *requests[];
};

/* Of what a request has come to, and of the answers that have come. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

/* How far a request is, which libc's gai_error() does not ask. */
enum { DONE, WAITS, BEGUN };

/* Where that stands: libc keeps nothing there. */
static int *stage(struct gaicb *request)
{
	return &request->__glibc_reserved[0];
}

static void answer(struct gaicb *request)
{
	struct addrinfo *result = NULL;
	int status;

	pthread_mutex_lock(&lock);
	if (*stage(request) != WAITS) {
		pthread_mutex_unlock(&lock);
		return;
	}
	*stage(request) = BEGUN;
	pthread_mutex_unlock(&lock);

	status = getaddrinfo(request->ar_name, request->ar_service, request->ar_request, &result);

	pthread_mutex_lock(&lock);
	request->ar_result = result;
	*stage(request) = DONE;
	__atomic_store_n(&request->__return, status, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
}

static void notify(const struct sigevent *event)
{
	if (event->sigev_notify == SIGEV_SIGNAL)
		sigqueue(preload.pid, event->sigev_signo, event->sigev_value);
	else if (event->sigev_notify == SIGEV_THREAD)
		event->sigev_notify_function(event->sigev_value);
}

static void *answer_all(void *memory)
{
	struct work *work = memory;

	for (int i = 0; i < work->n; i++)
		if (work->requests[i])
			answer(work->requests[i]);
	notify(&work->event);
	free(work);
	return NULL;
}

/* A thread of its own, that takes none of the program's signals. */
static int start(struct work *work)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setsigmask_np(&attr, &all);
	err = pthread_create(&thread, &attr, answer_all, work);
	pthread_attr_destroy(&attr);
	return err;
}

HOOK int getaddrinfo_a(int mode, struct gaicb *list[], int n, struct sigevent *event)
{
	struct work *work;

	if (!preload_on_stack())
		return HOST(getaddrinfo_a)(mode, list, n, event);
	if (mode != GAI_WAIT && mode != GAI_NOWAIT) {
		errno = EINVAL;
		return EAI_SYSTEM;
	}
	work = malloc(sizeof(*work) + (size_t)(n > 0 ? n : 0) * sizeof(struct gaicb *));
	if (!work)
		return EAI_MEMORY;
	work->n = n > 0 ? n : 0;
	memset(&work->event, 0, sizeof(work->event));
	work->event.sigev_notify = SIGEV_NONE;
	if (event && mode == GAI_NOWAIT)
		work->event = *event;
	for (int i = 0; i < work->n; i++) {
		work->requests[i] = list[i];
		if (!list[i])
			continue;
		*stage(list[i]) = WAITS;
		list[i]->ar_result = NULL;
		__atomic_store_n(&list[i]->__return, EAI_INPROGRESS, __ATOMIC_RELEASE);
	}
	if (mode == GAI_WAIT)
		answer_all(work);
	else if (start(work)) {
		for (int i = 0; i < work->n; i++)
			if (list[i])
				list[i]->__return = EAI_AGAIN;
		free(work);
		return EAI_AGAIN;
	}
	return 0;
}

/* Whether one is answered; and whether there is one at all. */
static bool any_answered(const struct gaicb *const list[], int n, bool *any)
{
	*any = false;
	for (int i = 0; i < n; i++) {
		if (!list[i])
			continue;
		*any = true;
		if (list[i]->__return != EAI_INPROGRESS)
			return true;
	}
	return false;
}

static void unlock(void *unused)
{
	(void)unused;
	pthread_mutex_unlock(&lock);
}

HOOK int gai_suspend(const struct gaicb *const list[], int n, const struct timespec *timeout)
{
	struct timespec until = { 0 };
	volatile int err = 0;
	bool any = false;

	if (!preload_on_stack())
		return HOST(gai_suspend)(list, n, timeout);
	if (timeout) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += timeout->tv_sec + (until.tv_nsec + timeout->tv_nsec) / 1000000000;
		until.tv_nsec = (until.tv_nsec + timeout->tv_nsec) % 1000000000;
	}
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, NULL);
	while (!any_answered(list, n, &any) && any && !err)
		err = timeout ? pthread_cond_timedwait(&answered, &lock, &until)
			      : pthread_cond_wait(&answered, &lock);
	pthread_cleanup_pop(1);
	return err ? EAI_AGAIN : any ? 0 : EAI_ALLDONE;
}

static int cancel(struct gaicb *request)
{
	if (request->__return != EAI_INPROGRESS)
		return EAI_ALLDONE;
	if (*stage(request) != WAITS)
		return EAI_NOTCANCELED;
	*stage(request) = DONE;
	request->__return = EAI_CANCELED;
	pthread_cond_broadcast(&answered);
	return EAI_CANCELED;
}

HOOK int gai_cancel(struct gaicb *request)
{
	int ret;

	if (!preload_on_stack())
		return HOST(gai_cancel)(request);
	pthread_mutex_lock(&lock);
	ret = cancel(request);
	pthread_mutex_unlock(&lock);
	return ret;
}
