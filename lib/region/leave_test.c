// SPDX-License-Identifier: GPL-2.0-only
/* Threads that used a stack which is left before they end, or while they do. */
#include "guise/guise.h"
#include "guise/syscall.h"

#include "test/kernel.h"
#include "test/tap.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#define THREADS 16
#define ROUNDS  20
#define STACKS  10 /* more than a thread may use at a time */

static struct guise_stack *s;
static sem_t used, may_end;

static long use(void)
{
	return guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0);
}

static void *use_and_wait(void *unused)
{
	(void)unused;
	use();
	sem_post(&used);
	sem_wait(&may_end);
	return NULL;
}

static void start(pthread_t thread[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, use_and_wait, NULL);
	for (int i = 0; i < THREADS; i++)
		sem_wait(&used);
}

static void let_end(void)
{
	for (int i = 0; i < THREADS; i++)
		sem_post(&may_end);
}

static void await(pthread_t thread[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void *use_many(void *unused)
{
	long bad = 0;

	for (int i = 0; i < STACKS; i++) {
		sem_wait(&may_end);
		bad += use() < 0;
		sem_post(&used);
	}
	(void)unused;
	return (void *)bad;
}

static void one_thread_many_stacks(void)
{
	pthread_t thread;
	void *bad = NULL;

	pthread_create(&thread, NULL, use_many, NULL);
	for (int i = 0; i < STACKS; i++) {
		s = test_stack("left", 0);
		sem_post(&may_end);
		sem_wait(&used);
		guise_leave(s);
	}
	pthread_join(thread, &bad);
	tap(!bad, "a thread may use one stack after the other, which others leave");
}

int main(void)
{
	pthread_t thread[THREADS];

	test_find_kernel();
	sem_init(&used, 0, 0);
	sem_init(&may_end, 0, 0);
	s = test_stack("left", 0);
	start(thread);
	guise_leave(s);
	let_end();
	await(thread);
	tap(true, "threads end behind the stack that they have used");
	for (int i = 0; i < ROUNDS; i++) {
		s = test_stack("left", 0);
		start(thread);
		let_end();
		guise_leave(s);
		await(thread);
	}
	tap(true, "threads end while it is left");
	one_thread_many_stacks();
	return tap_end();
}
