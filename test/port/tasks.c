// SPDX-License-Identifier: GPL-2.0-only
/*
 * As many threads as a stack takes, all at the same time. Runs under guise run.
 *
 *	tasks N		starts up to N threads, each of which makes a socket and keeps it, until
 *			one gets none. Prints how many have one, and what that one was told
 *	tasks N stay	the same, and stays until its standard input ends
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static sem_t ready;
static int error;

static void *thread(void *unused)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)unused;
	if (fd < 0)
		error = errno;
	sem_post(&ready);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, started = 0, failed = 0;
	pthread_attr_t attr;
	pthread_t unused;

	sem_init(&ready, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	while (started < n && !error) {
		failed = pthread_create(&unused, &attr, thread, NULL);
		if (failed)
			break;
		started++;
		sem_wait(&ready);
	}
	if (failed)
		printf("the host starts no more: %s\n", strerrorname_np(failed));
	else
		printf("%d %s\n", started - !!error, error ? strerrorname_np(error) : "all");
	fflush(stdout);
	while (argc > 2 && read(0, &(char){ 0 }, 1) > 0)
		;
	_exit(0);
}
