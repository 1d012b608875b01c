// SPDX-License-Identifier: GPL-2.0-only
/* Messages with descriptors: all come, are close-on-exec, and none is left behind. */
#include "host/message.h"

#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int pair[2];

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool carried(unsigned int n)
{
	int before = open_descriptors(), fd[GUISE_MESSAGE_FDS];
	struct guise_message m;
	char data[4] = "";
	bool good;

	for (unsigned int i = 0; i < n; i++)
		fd[i] = pair[i % 2];
	good = !guise_message_send(pair[0], "abc", 3, fd, n) &&
	       guise_message_receive(pair[1], data, sizeof(data), &m) == 3 &&
	       !strcmp(data, "abc") && m.fds == n && open_descriptors() == before + (int)n;
	for (unsigned int i = 0; good && i < n; i++)
		good = fcntl(m.fd[i], F_GETFD) == FD_CLOEXEC;
	guise_message_close(&m);
	return good && open_descriptors() == before;
}

int main(void)
{
	struct guise_message m;
	char data[2];
	int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 1;
	tap(carried(0) && carried(1) && carried(2), "a message with none, one, two");
	tap(carried(GUISE_MESSAGE_FDS - 1) && carried(GUISE_MESSAGE_FDS), "and with all it can");
	tap(guise_message_send(pair[0], "abc", 3, pair, GUISE_MESSAGE_FDS + 1) == -EINVAL,
	    "not with one more");
	tap(guise_message_receive(pair[1], data, sizeof(data), &m) == -EAGAIN && !m.fds,
	    "no message: nothing is waited for");
	tap(!guise_message_send(pair[0], "abc", 3, NULL, 0) &&
		    guise_message_receive(pair[1], data, sizeof(data), &m) == 3 && !m.sender.pid,
	    "a message that is too long for its room has its whole length, and no sender");
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	tap(!guise_message_send(pair[0], "a", 1, pair, 2) &&
		    guise_message_receive(pair[1], data, sizeof(data), &m) == 1 &&
		    m.sender.pid == getpid() && m.fds == 2,
	    "where it is asked for, its sender");
	guise_message_close(&m);
	while (!guise_message_send(pair[0], "a", 1, NULL, 0))
		;
	tap(guise_message_send(pair[0], "a", 1, NULL, 0) == -EAGAIN, "no room: not waited for");
	close(pair[1]);
	tap(guise_message_send(pair[0], "a", 1, NULL, 0) == -ECONNRESET &&
		    guise_message_send(pair[0], "a", 1, NULL, 0) == -EPIPE,
	    "nobody there: no signal");
	return tap_end();
}
