/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that wait in the stack are cancellation points; see cancel.c. */
#ifndef GUISE_PRELOAD_CANCEL_H
#define GUISE_PRELOAD_CANCEL_H

#include "preload/preload.h"

extern __thread bool preload_cancellable
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Between these two the thread may be cancelled anywhere outside the stack: what it has taken
 * needs a cleanup handler. */
static inline void cancel_begin(void)
{
	preload_cancellable = true;
	pthread_testcancel();
}

static inline void cancel_end(void)
{
	preload_cancellable = false;
}

/* A call on the stack's descriptor sfd that may wait. */
static inline long inside_waiting(long nr, int sfd, long b, long c, long d, long e, long f)
{
	long ret;

	cancel_begin();
	ret = guise_call(preload.stack, nr, sfd, b, c, d, e, f);
	cancel_end();
	return libc_result(ret);
}

#endif
