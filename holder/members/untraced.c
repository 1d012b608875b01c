// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why a process cannot be traced. The host's kernel says EPERM for every reason. Reasons that
 * concern the whole machine are found by guise doctor; those that concern one process are
 * found here.
 */
#include "holder/members/untraced.h"

#include "region/process.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *word, *sentence;
} why[UNTRACED_WHYS] = {
	[UNTRACED_NOT] = { "", "was traced" },
	[UNTRACED_LET_GO] = { "let_go", "was let go (guise detach, a debugger)" },
	[UNTRACED_OCCUPIED] = { "occupied", "could not be traced (another program, as strace or "
					    "gdb, traced it)" },
	[UNTRACED_USER] = { "user", "could not be traced (it was another user's)" },
	[UNTRACED_UNDUMPABLE] = { "undumpable",
				  "could not be traced (it had forbidden that: PR_SET_DUMPABLE)" },
	[UNTRACED_REFUSED] = { "refused", "could not be traced (guise doctor says why)" },
};

enum untraced untraced_why(pid_t pid, uid_t user)
{
	struct guise_thread thread;
	struct stat folder;
	char path[32];

	if (!guise_thread_read(pid, &thread))
		return UNTRACED_REFUSED;
	if (thread.tracer > 0)
		return UNTRACED_OCCUPIED;
	if (thread.user != user)
		return UNTRACED_USER;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if (!stat(path, &folder) && folder.st_uid != thread.user)
		return UNTRACED_UNDUMPABLE;
	return UNTRACED_REFUSED;
}

const char *untraced_sentence(enum untraced which)
{
	return why[which < UNTRACED_WHYS ? which : UNTRACED_REFUSED].sentence;
}

void untraced_write(const uint64_t count[UNTRACED_WHYS], FILE *out)
{
	const char *separator = "";
	uint64_t all = 0;

	for (int i = UNTRACED_OCCUPIED; i < UNTRACED_WHYS; i++)
		all += count[i];
	fprintf(out, "\"untraced\":%" PRIu64 ",\"untraced_why\":[", all);
	for (int i = UNTRACED_OCCUPIED; i < UNTRACED_WHYS; i++)
		if (count[i]) {
			fprintf(out, "%s\"%s\"", separator, why[i].word);
			separator = ",";
		}
	putc(']', out);
}
