// SPDX-License-Identifier: GPL-2.0-only
/* Deadlines: one that passes, one that is met, one that begins anew with each progress. */
#include "holder/deadline.h"

#include "test/tap.h"

#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORCED 77

static void force(void *arg)
{
	_exit(*(int *)arg);
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static int status_of(void (*child)(void))
{
	int how, forced = FORCED;
	pid_t pid = fork();

	if (!pid) {
		deadline_init(1, force, &forced);
		child();
		_exit(0);
	}
	waitpid(pid, &how, 0);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void waits(void)
{
	deadline_renew();
	for (;;)
		pause();
}

static void meets(void)
{
	deadline_renew();
	deadline_met();
	sleep_ms(1500);
}

static void goes_on(void)
{
	for (int i = 0; i < 20; i++) {
		deadline_renew();
		sleep_ms(100);
	}
	deadline_met();
}

static void meets_and_waits(void)
{
	meets();
	waits();
}

/* The step that was too long comes to its end while the process is being ended. */
static void slowly(void *arg)
{
	sleep_ms(1000);
	force(arg);
}

static void is_late(void)
{
	int forced = FORCED;

	deadline_init(1, slowly, &forced);
	deadline_renew();
	sleep_ms(1500);
	deadline_met();
}

int main(void)
{
	tap(status_of(waits) == FORCED, "after the deadline it is by force");
	tap(status_of(meets) == 0, "one that is met has no effect");
	tap(status_of(goes_on) == 0, "with progress it begins anew");
	tap(status_of(meets_and_waits) == FORCED, "and again after it was met");
	tap(status_of(is_late) == FORCED, "who comes too late does not go on");
	return tap_end();
}
