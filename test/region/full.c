// SPDX-License-Identifier: GPL-2.0-only
/* Forks and spawns on a stack that has no place for another process, and then has. */
#include "places.h"

#include <errno.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool taken[GUISE_MAX_PROCS];

/* As if there were as many processes as there may be. */
static void fill(bool on)
{
	struct guise_region *r = (void *)(places_base() + GUISE_OFF_HEADER);

	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		if (on && !r->procs[i].used) {
			taken[i] = true;
			r->procs[i].used = 1;
		} else if (!on && taken[i]) {
			r->procs[i].used = 0;
		}
}

static void tell(const char *what, int err)
{
	printf("%s %s\n", what, err ? strerrorname_np(err) : "ok");
}

static void try(void)
{
	char *const argv[] = { "true", NULL };
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	tell("fork", pid < 0 ? errno : 0);
	tell("spawn", posix_spawnp(&pid, "true", NULL, NULL, argv, environ));
	while (wait(NULL) > 0)
		;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (socket(AF_INET, SOCK_STREAM, 0) < 0)
		return 1;
	fill(true);
	try();
	fill(false);
	try();
	return 0;
}
