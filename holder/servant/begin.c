// SPDX-License-Identifier: GPL-2.0-only
/* How the warden starts a servant. It is not a child of the warden's for longer than a moment:
 * its end is seen as that of any member. */
#include "holder/servant/servant.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int servant_begin(int channel, pid_t who, int end, const struct isolation_user *user)
{
	char number[3][16], rights[16 * (ISOLATION_GROUPS + 2)],
		program[] = "guise-holder", word[] = "--servant", *none[] = { NULL };
	char *args[] = { program, word, number[0], number[1], number[2], rights, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int err;

	snprintf(number[0], sizeof(number[0]), "%d", channel);
	snprintf(number[1], sizeof(number[1]), "%d", end);
	snprintf(number[2], sizeof(number[2]), "%d", who);
	isolation_write(user, rights, sizeof(rights));
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return guise_fail(err, "join: no servant: %s", strerror(err));
	/* To itself: it is not close-on-exec there. */
	err = posix_spawn_file_actions_adddup2(&actions, channel, channel);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, end, end);
	if (!err)
		err = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, none);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return guise_fail(err, "join: no servant for process %d: %s", who, strerror(err));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
