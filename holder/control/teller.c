// SPDX-License-Identifier: GPL-2.0-only
/*
 * Questions to the stack itself take the virtual CPU, whose owner may be stopped or dead. So
 * a thread of its own asks them, the teller, which is started by the first such request; the
 * thread that serves the clients never waits. The teller has a copy of each client's
 * descriptor, in the order in which they asked.
 *
 * A list of connections (listing.c) is one client's, from page to page. The clients have
 * numbers, and a number is told to be free before another client has it.
 */
#include "holder/control/teller.h"

#include "holder/control/listing.h"
#include "holder/control/report.h"

#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void teller_init(struct teller *t)
{
	t->running = false;
	memset(t->listings, 0, sizeof(t->listings));
	t->questions[0] = t->questions[1] = -1;
}

static void say(int client, const char *text)
{
	host_sys(SYS_sendto, client, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

static void tell_sockets(struct teller *t, int client)
{
	char text[256];

	if (report_of_the_stack(t->s, text, sizeof(text)))
		say(client, text);
}

static void tell_connections(struct teller *t, const struct teller_question *q)
{
	struct listing **l = &t->listings[q->number];
	char refusal[512], *page = NULL;

	if (!*l && (*l = malloc(sizeof(**l))))
		listing_init(*l);
	if (*l)
		page = listing_page(*l, t->s, q->from);
	else
		guise_fail(ENOMEM, "out of memory for the list of connections");
	snprintf(refusal, sizeof(refusal), "error %s", guise_error());
	say(q->client, page ? page : refusal);
	free(page);
}

static void forget(struct teller *t, unsigned int number)
{
	if (!t->listings[number])
		return;
	listing_end(t->listings[number]);
	free(t->listings[number]);
	t->listings[number] = NULL;
}

/* For one client after the other. */
static void *tell(void *arg)
{
	struct teller *t = arg;
	struct teller_question q;

	while (host_sys(SYS_read, t->questions[0], &q, sizeof(q)) == sizeof(q)) {
		switch (q.about) {
		case TELLER_SOCKETS:
			tell_sockets(t, q.client);
			break;
		case TELLER_CONNECTIONS:
			tell_connections(t, &q);
			break;
		case TELLER_GONE:
			forget(t, q.number);
			continue;
		}
		host_sys(SYS_close, q.client);
	}
	/* What they have in the stack ends with the process. */
	for (int i = 0; i < TELLER_CLIENTS; i++)
		free(t->listings[i]);
	memset(t->listings, 0, sizeof(t->listings));
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

static bool put(struct teller *t, const struct teller_question *q)
{
	return host_sys(SYS_write, t->questions[1], q, sizeof(*q)) == sizeof(*q);
}

bool teller_ask(struct teller *t, struct guise_stack *s, struct teller_question q)
{
	q.client = (int)host_sys(SYS_fcntl, q.client, F_DUPFD_CLOEXEC, 3);
	if (q.client < 0)
		return false;
	if (start(t, s) && put(t, &q))
		return true;
	host_sys(SYS_close, q.client);
	return false;
}

void teller_forget(struct teller *t, unsigned int number)
{
	struct teller_question q = { .about = TELLER_GONE, .number = number };

	/* Where there is no room for this, the list is forgotten with the next client's. */
	if (t->running)
		put(t, &q);
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
