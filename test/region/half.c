// SPDX-License-Identifier: GPL-2.0-only
/* A member is killed that had just taken the place of a thread, and not yet gone on from there. */
#include "places.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t own_process(const struct guise_region *r)
{
	for (uint32_t i = 1; i < GUISE_MAX_PROCS; i++)
		if (r->procs[i].used && r->procs[i].pid == getpid())
			return i;
	return 0;
}

static void take_and_die(void)
{
	const char *base = places_base();
	struct guise_region *r = (void *)(uintptr_t)(base + GUISE_OFF_HEADER);
	struct guise_slot *slot = (void *)(uintptr_t)(base + GUISE_OFF_SLOTS);
	uint32_t proc;

	if (socket(AF_INET, SOCK_STREAM, 0) < 0)
		_exit(1);
	do /* the holder enters the process that came */
		proc = own_process(r);
	while (!proc);
	for (int i = 1; i < GUISE_MAX_SLOTS; i++) {
		uint32_t unused = 0;

		if (r->slots_end <= (uint32_t)i)
			r->slots_end = (uint32_t)i + 1;
		if (__atomic_compare_exchange_n(&slot[i].used, &unused, proc + 1, 0,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			kill(getpid(), SIGKILL);
	}
	_exit(2);
}

int main(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	time_t end = time(NULL) + 60;
	struct places before;
	int status;
	pid_t pid;

	if (socket(AF_INET, SOCK_STREAM, 0) < 0)
		return 1;
	before = places_taken();
	pid = fork();
	if (!pid)
		take_and_die();
	if (waitpid(pid, &status, 0) != pid || status != SIGKILL)
		return 1;
	while (places_taken().slots > before.slots && time(NULL) < end)
		nanosleep(&moment, NULL);
	printf("%d places more\n", (int)places_taken().slots - (int)before.slots);
	return 0;
}
