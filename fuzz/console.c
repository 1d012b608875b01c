// SPDX-License-Identifier: GPL-2.0-only
#include "console.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CONSOLE_ROOM (1 << 20)

static int console = -1;

int console_open(void)
{
	int pipe_fd[2];

	/* What is too much for the pipe is lost, rather than anyone stuck. */
	if (pipe2(pipe_fd, O_NONBLOCK | O_CLOEXEC))
		return -1;
	fcntl(pipe_fd[1], F_SETPIPE_SZ, CONSOLE_ROOM);
	console = pipe_fd[0];
	return pipe_fd[1];
}

const char *console_alarm(char *last, size_t room)
{
	static char text[CONSOLE_ROOM + 1];
	static const char *const alarms[] = { "WARNING:", "BUG:", "Oops", "cut here",
					      "refcount_t" };
	ssize_t n = read(console, text, CONSOLE_ROOM);
	size_t kept;

	if (n <= 0)
		return NULL;
	text[n] = '\0';
	kept = (size_t)n < room ? (size_t)n : room - 1;
	memcpy(last, text + n - kept, kept + 1);
	for (size_t i = 0; i < sizeof(alarms) / sizeof(alarms[0]); i++) {
		char *at = strstr(text, alarms[i]);

		if (at) {
			at[strcspn(at, "\n")] = '\0';
			return at;
		}
	}
	return NULL;
}
