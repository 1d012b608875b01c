// SPDX-License-Identifier: GPL-2.0-only
/*
 * New threads: each begins by having its raw system calls seen (trap.c), with
 * no signal blocked that guise needs (sigmask.c).
 */
#include "host/signal.h"
#include "host/sys.h"
#include "preload/preload.h"
#include "preload/raw/trap.h"
#include "preload/wait/waiting.h"

#include <stdlib.h>
#include <threads.h>

struct beginning {
	union {
		void *(*posix)(void *);
		int (*c11)(void *);
	} function;
	void *argument;
};

static struct beginning take(void *memory)
{
	struct beginning b = *(struct beginning *)memory;

	unsigned long unblocked = GUISE_UNBLOCKED;

	free(memory);
	host_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &unblocked, 0, KERNEL_SIGSET);
	preload_trap_thread();
	return b;
}

static void *posix_begins(void *memory)
{
	struct beginning b = take(memory);

	return b.function.posix(b.argument);
}

static int c11_begins(void *memory)
{
	struct beginning b = take(memory);

	return b.function.c11(b.argument);
}

HOOK int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
			void *argument)
{
	struct beginning *b;
	int err;

	if (!preload_on_stack())
		return HOST(pthread_create)(thread, attr, function, argument);
	b = malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	b->function.posix = function;
	b->argument = argument;
	err = HOST(pthread_create)(thread, attr, posix_begins, b);
	if (err)
		free(b);
	return err;
}

HOOK int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	struct beginning *b;
	int err;

	if (!preload_on_stack())
		return HOST(thrd_create)(thread, function, argument);
	b = malloc(sizeof(*b));
	if (!b)
		return thrd_nomem;
	b->function.c11 = function;
	b->argument = argument;
	err = HOST(thrd_create)(thread, c11_begins, b);
	if (err != thrd_success)
		free(b);
	return err;
}
