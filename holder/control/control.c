// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control socket: how commands find a stack that is there already.
 *
 * The command line has made and bound it (internal/holder/socket.go): a SOCK_SEQPACKET
 * socket in the user's runtime folder, and a symbolic link to it for a name. Each
 * packet is a request, and each request has one answer; the client closes.
 *
 *	status		two packets of JSON: what the holder itself knows, at once,
 *			and what only the stack can tell ({"sockets":N}), when it does
 *	connections N	a page of JSON: the stack's connections from number N on, which is
 *			0 or what the page before named as the next (listing.c)
 *	ticket		"ok" with a ticket for this client: the right to join, as a
 *			descriptor
 *	alive		"ok" with a pipe's end for a guest, which only says that it is there
 *	guests		"ok" with the network namespace of programs that cannot join
 *	keep		"ok": the stack stays when its last program leaves. The command that
 *			starts a named stack holds a ticket until it says this; if it is
 *			killed before, the stack ends as well
 *	change tell KEY=VALUE
 *			"ok": as a tell line of the plan, in place of what it said
 *	change LINE	"ok" when the stack has been changed as the line of a plan says, or "no
 *			LINE", or "reset" (changes.c); descriptors of a link come with it
 *	detach PID	"ok": the holder traces that member no more
 *	down MS		"ok N": the stack ends, when its N members have left, or
 *			after MS milliseconds. No further ticket is given. The
 *			connection hangs up when everything is undone
 *
 * or "error SENTENCE". Only the user that the holder runs as, and root, may ask; the host's
 * kernel says which user a client is (SO_PEERCRED). Others are refused with a sentence, if
 * the folder lets them connect at all.
 *
 * Why each client has a ticket of its own: the holder of an unnamed stack ends
 * when all copies of the tickets are closed, so it must not keep one itself.
 *
 * All of it happens on the thread that watches the members, which never waits, except for
 * what only the stack can tell or change: other threads ask the stack (teller.c, changes.c). If
 * the stack gives no answer the client gets none, and has a time limit of its own. At the end the
 * thread that watches the members waits until the stack has delivered what was sent (drain.c),
 * and meanwhile answers that the stack is ending.
 */
#include "holder/control/control.h"

#include "holder/guests/guests.h"
#include "holder/plan.h"
#include "holder/relay/relay.h"
#include "holder/control/changes.h"
#include "holder/control/report.h"
#include "holder/control/run_folder.h"
#include "holder/control/teller.h"

#include "holder/carrier/ask.h"

#include "host/message.h"
#include "host/sys.h"
#include "region/stack.h"
#include "region/vcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS   TELLER_CLIENTS
#define TOLD_MOST 32768
#define TICKETS   1024
#define DRAIN_MAX 315360000000ull /* ten years, in ms: until the last program has left */

/* How long the watch of members may sleep while an end is set. */
#define LOOK_MAX 3600000

/* What an event is about: the kind above, an index below. */
enum kind { LISTENER, CLIENT, TICKET };

#define EVENT(kind, i) ((uint64_t)(kind) << 32 | (i))

struct control {
	struct guise_server *v;
	const struct guests *guests;
	const char *path, *name; /* NULL: none, or free again */
	char *told;              /* members of a JSON object */
	int listener, epoll, spare;
	int client[CLIENTS];
	int ticket[TICKETS];    /* or a pipe to a guest, ... */
	bool of_guest[TICKETS]; /* ... which hangs up, and brings nothing */
	unsigned int tickets;
	uint64_t began; /* ns */
	bool started, keep, ending;
	uint64_t deadline; /* ns */

	struct teller teller;
	struct changes changes;
};

struct control *control_new(int listener, const char *path, const char *name)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c || !(c->told = strdup(""))) {
		free(c);
		guise_fail(ENOMEM, "out of memory for the control socket");
		return NULL;
	}
	c->listener = listener;
	c->path = path;
	c->name = name;
	c->epoll = c->spare = -1;
	teller_init(&c->teller);
	changes_init(&c->changes, NULL);
	for (int i = 0; i < CLIENTS; i++)
		c->client[i] = -1;
	for (int i = 0; i < TICKETS; i++)
		c->ticket[i] = -1;
	return c;
}

int control_listener(const struct control *c)
{
	return c ? c->listener : -1;
}

const char *control_path(const struct control *c)
{
	return c->path;
}

/* Of a key that is told again, the newer value is told. */
static void forget_told(struct control *c, const char *key, size_t length)
{
	char *at = c->told, *end;

	for (; *at; at = *end ? end + 1 : end) {
		/* "KEY":"VALUE", and neither has quotes */
		end = strchr(strchr(at + 1, '"') + 3, '"') + 1;
		if (strncmp(at + 1, key, length) || at[length + 1] != '"')
			continue;
		if (*end)
			memmove(at, end + 1, strlen(end));
		else if (at > c->told)
			at[-1] = '\0';
		else
			*at = '\0';
		return;
	}
}

int control_tell(struct control *c, const char *word)
{
	const char *value = strchr(word, '=');
	char *told;

	if (!value || strpbrk(word, "\"\\ \n"))
		return guise_fail(EINVAL, "tell: expected KEY=VALUE, without quotes or blanks");
	forget_told(c, word, (size_t)(value - word));
	if (strlen(c->told) + strlen(word) > TOLD_MOST)
		return guise_fail(ENOSPC, "tell: more than %d characters to be told", TOLD_MOST);
	if (asprintf(&told, "%s%s\"%.*s\":\"%s\"", c->told, *c->told ? "," : "",
		     (int)(value - word), word, value + 1) < 0)
		return guise_fail(ENOMEM, "out of memory");
	free(c->told);
	c->told = told;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		host_sys(SYS_close, *fd);
	*fd = -1;
}

/* Those that are open hang up with the process: down waits for that. */
void control_free(struct control *c)
{
	if (!c)
		return;
	close_fd(&c->listener);
	close_fd(&c->spare);
	free(c->told);
	free(c);
}

static long watch(struct control *c, int fd, uint64_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

	return host_sys(SYS_epoll_ctl, c->epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* Keeps a spare descriptor: a client that connects when none is left is told so by it. */
static void take_spare(struct control *c)
{
	if (c->spare < 0)
		c->spare = (int)host_sys(SYS_fcntl, c->listener, F_DUPFD_CLOEXEC, 0);
}

int control_start(struct control *c, struct guise_server *v, struct plan *p)
{
	long ret;

	if (!c)
		return 0;
	c->v = v;
	c->guests = &p->relay->guests;
	changes_init(&c->changes, p);
	c->began = guise_host_now();
	c->epoll = (int)host_sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	ret = c->epoll < 0 ? c->epoll : watch(c, c->listener, EVENT(LISTENER, 0));
	take_spare(c);
	if (ret >= 0)
		ret = ask_to_listen(c->listener);
	if (ret < 0)
		return guise_fail((int)-ret, "cannot serve the control socket: %s",
				  strerror((int)-ret));
	c->started = true;
	return 0;
}

int control_fd(const struct control *c)
{
	return c && c->started ? c->epoll : -1;
}

bool control_has_tickets(const struct control *c)
{
	return c && c->tickets;
}

bool control_ending(const struct control *c, int *ms)
{
	uint64_t now;

	if (!c || !c->ending)
		return false;
	now = guise_host_now();
	*ms = 0;
	if (now < c->deadline) {
		uint64_t left = (c->deadline - now) / 1000000 + 1;

		*ms = left < LOOK_MAX ? (int)left : LOOK_MAX;
	}
	return true;
}

bool control_keeps(const struct control *c)
{
	return c && c->keep;
}

/* ---- answers -------------------------------------------------------------------- */

/* With a descriptor, unless that is -1. An answer for which the socket has no room is lost. */
static void answer(int client, const char *text, int fd)
{
	guise_message_send(client, text, strlen(text), &fd, fd >= 0);
}

static void refuse(int client)
{
	char text[512];

	snprintf(text, sizeof(text), "error %s", guise_error());
	answer(client, text, -1);
}

static void answer_status(struct control *c, int client)
{
	struct report_facts facts = {
		.age_ms = (guise_host_now() - c->began) / 1000000,
		.ending = c->ending,
		.told = c->told,
	};
	char *text = report_of_the_holder(c->v, &facts);

	if (!text) {
		refuse(client);
		return;
	}
	answer(client, text, -1);
	free(text);
	teller_ask(&c->teller, c->v->s,
		   (struct teller_question){ .about = TELLER_SOCKETS, .client = client });
}

static void answer_connections(struct control *c, unsigned int number, uint64_t from)
{
	const struct teller_question q = {
		.about = TELLER_CONNECTIONS,
		.client = c->client[number],
		.number = number,
		.from = from,
	};

	if (teller_ask(&c->teller, c->v->s, q))
		return;
	guise_fail(EAGAIN, "the stack %s has too many questions to answer", c->v->s->region->name);
	refuse(q.client);
}

/* A number in digits alone, which has the whole text. */
static bool read_cursor(const char *text, uint64_t *from)
{
	const size_t len = strlen(text);

	/* 18 digits are always in 64 bits. */
	if (!len || len > 18 || strspn(text, "0123456789") != len) {
		guise_fail(EINVAL, "connections: expected 0, or the number that the page before "
				   "named as the next");
		return false;
	}
	*from = strtoull(text, NULL, 10);
	return true;
}

/* The program's end of a ticket, or of a pipe for a guest; -errno. */
static int make_ticket(struct control *c, bool of_guest)
{
	/* Of a pipe the guest has the end that only reads. */
	const int ours = of_guest, theirs = !of_guest;
	int pair[2], i = 0, on = 1;
	long ret;

	if (c->ending)
		return guise_fail(ESHUTDOWN,
				  "the stack %s is being taken down, and takes no more "
				  "programs",
				  c->v->s->region->name);
	if (c->v->s->region->dead)
		return guise_fail(ENETDOWN, "the stack %s is lost", c->v->s->region->name);
	while (i < TICKETS && c->ticket[i] >= 0)
		i++;
	if (i == TICKETS)
		return guise_fail(EAGAIN, "the stack %s has %d tickets in use, and gives no more",
				  c->v->s->region->name, TICKETS);
	ret = of_guest ? host_sys(SYS_pipe2, pair, O_CLOEXEC)
		       : host_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	if (ret < 0)
		return guise_fail((int)-ret, "no %s: %s",
				  of_guest ? "pipe for a guest" : "socket pair for a ticket",
				  strerror((int)-ret));
	if (!of_guest)
		host_sys(SYS_setsockopt, pair[ours], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	ret = watch(c, pair[ours], EVENT(TICKET, (unsigned int)i));
	if (ret < 0) {
		host_sys(SYS_close, pair[0]);
		host_sys(SYS_close, pair[1]);
		return guise_fail((int)-ret, "cannot watch a ticket: %s", strerror((int)-ret));
	}
	c->ticket[i] = pair[ours];
	c->of_guest[i] = of_guest;
	c->tickets++;
	return pair[theirs];
}

static void answer_ticket(struct control *c, int client, bool of_guest)
{
	int ticket = make_ticket(c, of_guest);

	if (ticket < 0) {
		refuse(client);
		return;
	}
	answer(client, "ok", ticket);
	/* One that did not arrive hangs up now. */
	host_sys(SYS_close, ticket);
}

static void answer_guests(struct control *c, int client)
{
	if (guests_interface(c->guests)) {
		answer(client, "ok", c->guests->netns);
		return;
	}
	guise_fail(ENOENT, "the stack %s has no namespace for programs that cannot be preloaded",
		   c->v->s->region->name);
	refuse(client);
}

static void answer_down(struct control *c, int client, uint64_t ms)
{
	uint64_t deadline = guise_host_now() + (ms < DRAIN_MAX ? ms : DRAIN_MAX) * 1000000;
	char text[32];

	ask_to_hold(client);
	/* A second request may be in more of a hurry. */
	if (!c->ending || deadline < c->deadline)
		c->deadline = deadline;
	c->ending = true;
	snprintf(text, sizeof(text), "ok %u", c->v->members);
	answer(client, text, -1);
}

static void answer_detach(struct control *c, int client, int pid)
{
	if (!c->v->let_go || c->v->let_go(c->v, pid))
		refuse(client);
	else
		answer(client, "ok", -1);
}

static void answer_request(struct control *c, unsigned int number, const char *request,
			   const struct guise_message *with)
{
	static const char connections[] = "connections ";
	const int client = c->client[number];
	unsigned long long ms;
	uint64_t from;
	int end = 0, pid;

	if (!strcmp(request, "status")) {
		answer_status(c, client);
	} else if (!strncmp(request, "change tell ", 12)) {
		if (control_tell(c, request + 12))
			refuse(client);
		else
			answer(client, "ok", -1);
	} else if (!strncmp(request, "change ", 7)) {
		if (changes_ask(&c->changes, client, request + 7, with->fd, with->fds))
			refuse(client);
		return;
	} else if (!strncmp(request, connections, sizeof(connections) - 1)) {
		if (read_cursor(request + sizeof(connections) - 1, &from))
			answer_connections(c, number, from);
		else
			refuse(client);
	} else if (!strcmp(request, "ticket")) {
		answer_ticket(c, client, false);
	} else if (!strcmp(request, "alive")) {
		answer_ticket(c, client, true);
	} else if (!strcmp(request, "guests")) {
		answer_guests(c, client);
	} else if (!strcmp(request, "keep")) {
		c->keep = true;
		if (c->v->s->region->privileges == GUISE_PRIVILEGES_KEPT)
			c->v->s->region->privileges = GUISE_PRIVILEGES_HOST;
		answer(client, "ok", -1);
	} else if (sscanf(request, "down %llu%n", &ms, &end) == 1 && !request[end]) {
		answer_down(c, client, ms);
	} else if (sscanf(request, "detach %d%n", &pid, &end) == 1 && !request[end]) {
		answer_detach(c, client, pid);
	} else {
		guise_fail(EPROTO, "unknown request; are guise and guise-holder of one version?");
		refuse(client);
	}
	guise_message_close(with);
}

/* ---- clients -------------------------------------------------------------------- */

static bool may_ask(const struct control *c, int client)
{
	uid_t user;

	if (ask_about_client(client, &user))
		return true;
	guise_fail(EPERM,
		   "the stack %s belongs to user %u; you are user %u, and only they and root "
		   "may use it",
		   c->v->s->region->name, geteuid(), user);
	return false;
}

static long accept_one(const struct control *c)
{
	return host_sys(SYS_accept4, c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* A client that has connected, or -errno. When there is no descriptor for it, it would stay in
 * the queue and keep this thread awake: it gets the spare one, and a sentence. Where that does not
 * help (another thread was faster, or memory is lacking) this thread pauses. */
static long next_client(struct control *c)
{
	long client;

	for (;;) {
		client = accept_one(c);
		if ((client != -EMFILE && client != -ENFILE) || c->spare < 0) {
			guise_lacking_pause(client);
			return client;
		}
		close_fd(&c->spare);
		client = accept_one(c);
		guise_lacking_pause(client);
		if (client >= 0) {
			guise_fail(EMFILE, "the stack's holder has no descriptor left for a "
					   "command; end some of its programs");
			refuse((int)client);
			host_sys(SYS_close, client);
		}
		take_spare(c);
		if (client < 0)
			return client;
	}
}

static void accept_clients(struct control *c)
{
	long client;

	take_spare(c);
	while ((client = next_client(c)) >= 0) {
		unsigned int i = 0;

		while (i < CLIENTS && c->client[i] >= 0)
			i++;
		if (!may_ask(c, (int)client)) {
			refuse((int)client);
		} else if (i < CLIENTS && watch(c, (int)client, EVENT(CLIENT, i)) >= 0) {
			c->client[i] = (int)client;
			continue;
		}
		host_sys(SYS_close, client);
	}
}

static void hear_client(struct control *c, unsigned int number)
{
	int *client = &c->client[number];
	char request[CHANGES_TEXT + 16];
	struct guise_message with;
	long n = guise_message_receive(*client, request, sizeof(request) - 1, &with);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		guise_message_close(&with);
		/* The teller may have a copy, and the epoll would go on with that. */
		host_sys(SYS_epoll_ctl, c->epoll, EPOLL_CTL_DEL, *client, NULL);
		close_fd(client);
		teller_forget(&c->teller, number);
		return;
	}
	/* The rest of one that is too long is lost; it is none that is known, then. */
	request[n < (long)sizeof(request) ? n : (long)sizeof(request) - 1] = '\0';
	answer_request(c, number, request, &with);
}

static void hear_ticket(struct control *c, unsigned int i,
			void (*came)(void *arg, unsigned int proc), void *arg)
{
	int *ticket = &c->ticket[i], proc;

	if (c->of_guest[i])
		close_fd(ticket);
	while (*ticket >= 0 && (proc = guise_server_request_over(c->v, ticket)) != -EAGAIN &&
	       proc != -EPIPE)
		if (proc >= 0)
			came(arg, (unsigned int)proc);
	if (*ticket < 0)
		c->tickets--;
}

void control_turn(struct control *c, void (*came)(void *arg, unsigned int proc), void *arg)
{
	struct epoll_event ev[16];
	long n = host_sys(SYS_epoll_pwait, c->epoll, ev, sizeof(ev) / sizeof(ev[0]), 0, NULL, 0);

	for (long k = 0; k < n; k++) {
		unsigned int i = (uint32_t)ev[k].data.u64;

		switch ((enum kind)(ev[k].data.u64 >> 32)) {
		case LISTENER:
			accept_clients(c);
			break;
		case CLIENT:
			hear_client(c, i);
			break;
		case TICKET:
			hear_ticket(c, i, came, arg);
			break;
		}
	}
}

/* ---- the end -------------------------------------------------------------------- */

static void close_tickets(struct control *c)
{
	for (int i = 0; i < TICKETS; i++)
		close_fd(&c->ticket[i]);
	c->tickets = 0;
}

void control_end(struct control *c)
{
	if (!c || !c->started)
		return;
	close_tickets(c);
	c->ending = true;
	c->deadline = 0;
}

void control_silence(struct control *c)
{
	if (!c)
		return;
	close_tickets(c);
	teller_stop(&c->teller);
	changes_stop(&c->changes);
	close_fd(&c->epoll);
	close_fd(&c->spare);
	c->started = false;
}

void control_stop(struct control *c)
{
	if (!c || !c->path)
		return;
	control_silence(c);
	close_fd(&c->listener);
	run_folder_free(c->path, c->name);
	c->path = NULL;
}
