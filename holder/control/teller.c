// SPDX-License-Identifier: GPL-2.0-only
/*
 * Questions to the stack itself take the virtual CPU, whose owner may be stopped or dead. So
 * a thread of its own asks them, the teller, which is started by the first such request; the
 * thread that serves the clients never waits. The teller has a copy of each client's
 * descriptor, in the order in which they asked.
 */
#include "holder/control/teller.h"

#include "holder/control/report.h"

#include "host/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void teller_init(struct teller *t)
{
	t->running = false;
	t->questions[0] = t->questions[1] = -1;
}

/* For one client after the other. */
static void *tell(void *arg)
{
	struct teller *t = arg;
	char text[256];
	int client;

	while (host_sys(SYS_read, t->questions[0], &client, sizeof(client)) == sizeof(client)) {
		if (report_of_the_stack(t->s, text, sizeof(text)))
			host_sys(SYS_sendto, client, text, strlen(text),
				 MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		host_sys(SYS_close, client);
	}
	return NULL;
}

static bool start(struct teller *t, struct guise_stack *s)
{
	if (t->running)
		return true;
	t->s = s;
	if (t->questions[0] < 0 && host_sys(SYS_pipe2, t->questions, O_CLOEXEC) < 0)
		return false;
	/* The thread that asks must never wait for the one that tells. */
	host_sys(SYS_fcntl, t->questions[1], F_SETFL, O_NONBLOCK);
	t->running = !pthread_create(&t->thread, NULL, tell, t);
	return t->running;
}

void teller_ask(struct teller *t, struct guise_stack *s, int client)
{
	int copy = (int)host_sys(SYS_fcntl, client, F_DUPFD_CLOEXEC, 3);

	if (copy >= 0 && (!start(t, s) || host_sys(SYS_write, t->questions[1], &copy,
						   sizeof(copy)) != sizeof(copy)))
		host_sys(SYS_close, copy);
}

void teller_stop(struct teller *t)
{
	if (t->questions[1] >= 0)
		host_sys(SYS_close, t->questions[1]);
	if (t->running)
		pthread_join(t->thread, NULL);
	if (t->questions[0] >= 0)
		host_sys(SYS_close, t->questions[0]);
	teller_init(t);
}
