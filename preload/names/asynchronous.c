// SPDX-License-Identifier: GPL-2.0-only
/*
 * getaddrinfo_a: names that are looked up while the program goes on. libc's own
 * would look them up inside libc, over the host's stack.
 *
 * Each list of requests has a thread, which answers them one after the other and
 * then notifies the caller as that wished. The result of a request stands in the
 * field in which libc keeps it, so gai_error() is libc's own. A request that the
 * thread has not begun can be cancelled. A waiting thread is woken by every answer, and
 * looks whether it is one that it waits for.
 */
#include "preload/wait/completion.h"
#include "preload/preload.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

struct work {
	int n;
	struct sigevent event;
	struct gaicb *requests[];
};

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

	completion_lock();
	if (*stage(request) != WAITS) {
		completion_unlock();
		return;
	}
	*stage(request) = BEGUN;
	completion_unlock();

	status = getaddrinfo(request->ar_name, request->ar_service, request->ar_request, &result);

	completion_lock();
	request->ar_result = result;
	*stage(request) = DONE;
	__atomic_store_n(&request->__return, status, __ATOMIC_RELEASE);
	completion_tell();
	completion_unlock();
}

static void *answer_all(void *memory)
{
	struct work *work = memory;

	for (int i = 0; i < work->n; i++)
		if (work->requests[i])
			answer(work->requests[i]);
	completion_notify(&work->event, SI_ASYNCNL);
	free(work);
	return NULL;
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
	else if (completion_thread(answer_all, work, NULL)) {
		for (int i = 0; i < work->n; i++)
			if (list[i])
				list[i]->__return = EAI_AGAIN;
		free(work);
		return EAI_AGAIN;
	}
	return 0;
}

/* Whether one is answered, or there is none. */
static bool any_answered(const void *const list[], int n)
{
	bool any = false;

	for (int i = 0; i < n; i++) {
		const struct gaicb *request = list[i];

		if (request && request->__return != EAI_INPROGRESS)
			return true;
		any |= !!request;
	}
	return !any;
}

HOOK int gai_suspend(const struct gaicb *const list[], int n, const struct timespec *timeout)
{
	bool any = false;
	int err, state;

	if (!preload_on_stack())
		return HOST(gai_suspend)(list, n, timeout);
	for (int i = 0; i < n; i++)
		any |= !!list[i];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as libc's */
	completion_lock();
	err = completion_wait(any_answered, (const void *const *)list, n, timeout);
	completion_unlock();
	pthread_setcancelstate(state, NULL);
	return err == EINTR ? EAI_INTR : err ? EAI_AGAIN : any ? 0 : EAI_ALLDONE;
}

static int cancel(struct gaicb *request)
{
	if (request->__return != EAI_INPROGRESS)
		return EAI_ALLDONE;
	if (*stage(request) != WAITS)
		return EAI_NOTCANCELED;
	*stage(request) = DONE;
	request->__return = EAI_CANCELED;
	completion_tell();
	return EAI_CANCELED;
}

HOOK int gai_cancel(struct gaicb *request)
{
	int ret;

	if (!preload_on_stack())
		return HOST(gai_cancel)(request);
	completion_lock();
	ret = cancel(request);
	completion_unlock();
	return ret;
}
