// SPDX-License-Identifier: GPL-2.0-only
/*
 * A deadline for the end of the holder.
 *
 * At its end the holder waits for threads of its own, and for answers of the stack's kernel. Each
 * comes soon. But what was changed on the host must be undone also if one does not come: because
 * of a fault of ours, of a debugger that has stopped one thread, of a program that has spoilt the
 * stack's memory. So another thread, which waits for nothing else, looks at the clock, and ends
 * the process by force. It never has anything to do with the stack.
 *
 * A process that is stopped as a whole looks at no clock: `guise down` has a deadline of its own,
 * and kills it.
 */
#include "holder/deadline.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct timespec until;
static unsigned int patience;
static bool started, running, passed;
static void (*end)(void *arg);
static void *end_arg;

static bool is_late(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until.tv_sec ||
	       (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec);
}

static void *watch(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!running || !is_late())
		if (running)
			pthread_cond_timedwait(&changed, &lock, &until);
		else
			pthread_cond_wait(&changed, &lock);
	passed = true;
	pthread_mutex_unlock(&lock);
	end(end_arg);
	return NULL;
}

/* Without memory for the thread there is no deadline. */
static bool start(void)
{
	pthread_condattr_t monotonic;
	pthread_t thread;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return !pthread_create(&thread, NULL, watch, NULL) && !pthread_detach(thread);
}

/* Holds the lock when it returns; it does not return after the deadline. */
static void take(void)
{
	pthread_mutex_lock(&lock);
	if (!passed)
		return;
	pthread_mutex_unlock(&lock);
	for (;;)
		pause();
}

void deadline_init(unsigned int seconds, void (*force)(void *arg), void *arg)
{
	patience = seconds;
	end = force;
	end_arg = arg;
}

void deadline_renew(void)
{
	if (!end)
		return;
	take();
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += patience;
	running = true;
	if (!started)
		started = start();
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

void deadline_met(void)
{
	take();
	running = false;
	pthread_mutex_unlock(&lock);
}
