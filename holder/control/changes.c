// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of a stack while programs are on it: lines of the plan, which clients of the control
 * socket send one at a time ("change LINE", "change no LINE"), with the descriptors of a link.
 *
 * A change takes the virtual CPU, whose owner may be stopped or dead. So a thread of its own makes
 * them, in the order in which they came; the thread that serves the clients never waits. That
 * thread has a copy of each client's descriptor, and answers "ok" or "error SENTENCE" itself.
 *
 * What was made is remembered, line by line. "change reset" takes all of it back, the last first: so
 * whoever follows the host's interfaces for a stack can be replaced by another one, which begins
 * anew. What is gone already, as an address with its interface, is no error then. A line that was
 * taken back by "no LINE" is forgotten; so are those that name an interface that was taken away.
 *
 * Limits: LINES_MOST lines are remembered; when there are more, a line that adds something is
 * refused. sysctls, MTUs and qdiscs stay as they are.
 */
#include "holder/control/changes.h"

#include "holder/plan.h"

#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINES_MOST 1024

/* As it goes through the pipe, in one piece. */
struct change {
	int client;
	unsigned int fds;
	int fd[CHANGES_FDS];
	char line[CHANGES_TEXT];
};

_Static_assert(sizeof(struct change) <= PIPE_BUF, "written whole, or not at all");

struct undo_line {
	struct undo_line *next;
	char line[];
};

void changes_init(struct changes *c, struct plan *plan)
{
	*c = (struct changes){ .plan = plan, .queue = { -1, -1 } };
}

/* ---- what was made ------------------------------------------------------------------------ */

/* Whether "no LINE" can take the line back. */
static bool adds(const char *line)
{
	static const char *const adding[] = { "link ", "address ", "route ", "rule ",
					      "mptcp endpoint " };

	for (size_t i = 0; i < sizeof(adding) / sizeof(*adding); i++)
		if (!strncmp(line, adding[i], strlen(adding[i])))
			return true;
	return false;
}

/* How much of a line says what it is about: of a link its name, of an endpoint its address. */
static size_t subject(const char *line)
{
	int words = !strncmp(line, "link ", 5) ? 2 : !strncmp(line, "mptcp ", 6) ? 3 : INT_MAX;
	const char *at = line;

	while (words-- && *at)
		at += strspn(at, " ") + strcspn(at + strspn(at, " "), " ");
	return (size_t)(at - line);
}

static bool is_about(const char *line, const char *other)
{
	size_t n = subject(line);

	return n == subject(other) && !strncmp(line, other, n);
}

static struct undo_line **find(struct changes *c, const char *line)
{
	struct undo_line **at = &c->made;

	while (*at && !is_about((*at)->line, line))
		at = &(*at)->next;
	return at;
}

static void forget(struct changes *c, struct undo_line **at)
{
	struct undo_line *gone = *at;

	*at = gone->next;
	c->n_made--;
	free(gone);
}

/* Room for it, before it is made; NULL with the sentence. */
static struct undo_line *remember(const struct changes *c, const char *line)
{
	struct undo_line *l = NULL;

	if (c->n_made == LINES_MOST)
		guise_fail(ENOSPC, "change: the stack remembers %d lines at most", LINES_MOST);
	else if (!(l = malloc(sizeof(*l) + strlen(line) + 1)))
		guise_fail(ENOMEM, "change: out of memory");
	else
		strcpy(l->line, line);
	return l;
}

/* Whether the line names the interface. */
static bool names(const char *line, const char *ifname)
{
	size_t len = strlen(ifname);

	for (const char *at = line; (at = strstr(at, ifname)); at += len)
		if (at > line && at[-1] == ' ' && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

/* Addresses and routes went with it. */
static void forget_interface(struct changes *c, const char *line)
{
	char ifname[16];

	if (sscanf(line, "link %15s", ifname) != 1)
		return;
	for (struct undo_line **at = &c->made; *at;)
		if (names((*at)->line, ifname) && strncmp((*at)->line, "rule ", 5) &&
		    strncmp((*at)->line, "mptcp ", 6))
			forget(c, at);
		else
			at = &(*at)->next;
}

static int take_back(struct changes *c, const char *line)
{
	char text[CHANGES_TEXT + 8];

	snprintf(text, sizeof(text), "no %s", line);
	return plan_change(c->plan, text, NULL, 0);
}

static int make(struct changes *c, const struct change *q)
{
	struct undo_line *l = NULL;
	char text[CHANGES_TEXT];
	int err;

	/* An endpoint that is there gets other flags. */
	if (adds(q->line) && !*find(c, q->line)) {
		l = remember(c, q->line);
		if (!l)
			return -ENOSPC;
	}
	strcpy(text, q->line);
	err = plan_change(c->plan, text, q->fd, q->fds);
	if (err < 0 || !l) {
		free(l);
		return err < 0 ? err : 0;
	}
	l->next = c->made;
	c->made = l;
	c->n_made++;
	return 0;
}

static int carry_out(struct changes *c, const struct change *q)
{
	const char *line = q->line;
	struct undo_line **at;
	int err;

	if (!strcmp(line, "reset")) {
		while (c->made) {
			take_back(c, c->made->line);
			forget(c, &c->made);
		}
		return 0;
	}
	if (strncmp(line, "no ", 3))
		return make(c, q);
	line += 3;
	err = take_back(c, line);
	if (err)
		return err;
	at = find(c, line);
	if (*at)
		forget(c, at);
	if (!strncmp(line, "link ", 5))
		forget_interface(c, line);
	return 0;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		host_sys(SYS_close, fd[i]);
}

static void say(int client, const char *text)
{
	host_sys(SYS_sendto, client, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

static void *serve(void *arg)
{
	struct changes *c = arg;
	struct change q;

	while (host_sys(SYS_read, c->queue[0], &q, sizeof(q)) == sizeof(q)) {
		char text[512] = "ok";

		if (carry_out(c, &q))
			snprintf(text, sizeof(text), "error %s", guise_error());
		close_all(q.fd, q.fds);
		say(q.client, text);
		host_sys(SYS_close, q.client);
	}
	return NULL;
}

static bool start(struct changes *c)
{
	if (c->running)
		return true;
	if (c->queue[0] < 0 && host_sys(SYS_pipe2, c->queue, O_CLOEXEC) < 0)
		return false;
	/* The thread that asks must never wait for the one that changes. */
	host_sys(SYS_fcntl, c->queue[1], F_SETFL, O_NONBLOCK);
	c->running = !pthread_create(&c->thread, NULL, serve, c);
	return c->running;
}

int changes_ask(struct changes *c, int client, const char *line, const int *fd, unsigned int fds)
{
	struct change q = { .fds = fds };
	int err = 0;

	if (fds > CHANGES_FDS || strlen(line) >= sizeof(q.line))
		err = guise_fail(EINVAL,
				 "change: expected a line of less than %d characters, and %d "
				 "descriptors at most",
				 CHANGES_TEXT, CHANGES_FDS);
	if (!err) {
		memcpy(q.fd, fd, fds * sizeof(*fd));
		strcpy(q.line, line);
		q.client = (int)host_sys(SYS_fcntl, client, F_DUPFD_CLOEXEC, 3);
		if (q.client < 0 || !start(c) ||
		    host_sys(SYS_write, c->queue[1], &q, sizeof(q)) != sizeof(q)) {
			if (q.client >= 0)
				host_sys(SYS_close, q.client);
			err = guise_fail(EAGAIN, "change: the stack is behind with changes; ask "
						 "again later");
		}
	}
	if (err)
		close_all(fd, fds);
	return err;
}

void changes_stop(struct changes *c)
{
	if (c->queue[1] >= 0)
		host_sys(SYS_close, c->queue[1]);
	if (c->running)
		pthread_join(c->thread, NULL);
	if (c->queue[0] >= 0)
		host_sys(SYS_close, c->queue[0]);
	while (c->made)
		forget(c, &c->made);
	changes_init(c, c->plan);
}
