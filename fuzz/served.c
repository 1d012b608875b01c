// SPDX-License-Identifier: GPL-2.0-only
/* See served.h. */
#include "served.h"

#include "console.h"
#include "turns.h"

#include "holder/servant/servant.h"
#include "region/ask.h"
#include "region/serve.h"

#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMORY  (128ull << 20)
#define LOOK_MS 100
#define END_S   20

static struct guise_server server;
static int ticket;

/* Who came last is not polled before the next look. */
static void *hold(void *unused)
{
	static struct pollfd p[1 + GUISE_MAX_PROCS];
	static unsigned int of[1 + GUISE_MAX_PROCS];

	(void)unused;
	for (;;) {
		nfds_t n = 1;

		p[0] = (struct pollfd){ .fd = server.ticket, .events = POLLIN };
		for (unsigned int i = 0; i < GUISE_MAX_PROCS; i++)
			if (server.control[i] >= 0) {
				p[n] = (struct pollfd){ .fd = server.control[i], .events = POLLIN };
				of[n++] = i;
			}
		poll(p, n, LOOK_MS);
		for (nfds_t i = 1; i < n; i++)
			if (p[i].revents && !guise_server_hear(&server, of[i]))
				guise_server_gone(&server, of[i]);
		if (p[0].revents)
			guise_server_request(&server);
	}
	return NULL;
}

/* Nothing is known of any program. */
static int answer(void *v, enum guise_ask what, unsigned int proc, int32_t about)
{
	return what == GUISE_ASK_IDENTITY ? guise_server_identify(v, proc, about) : -EINVAL;
}

static int start_servant(int channel, const struct ucred *who, int end)
{
	struct isolation_user self;

	isolation_self(&self);
	return servant_begin(channel, who->pid, end, &self);
}

struct guise_stack *served_begin(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	static char path[4096];
	struct guise_stack *s;
	pthread_t thread;
	int err, pair[2];

	turns_need(readlink("/proc/self/exe", path, sizeof(path) - 64) > 0, "no path");
	strcat(dirname(path), "/../../guise-kernel");
	opt.image = getenv("GUISE_KERNEL") ? NULL : path;
	opt.name = "fuzz";
	opt.console_fd = dup2(console_open(), SERVED_CONSOLE); /* servants inherit it */
	opt.memory = MEMORY;
	s = guise_create(&opt, &err);
	if (!s) {
		fprintf(stderr, "no stack: %s\n", guise_error());
		exit(1);
	}
	turns_need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		   "no ticket");
	ticket = pair[0];
	turns_need(!guise_server_init(&server, s, pair[1]), "no holder");
	server.serve = start_servant;
	server.serve_all = true;
	/* Servants are children of it once their parents have ended. */
	turns_need(!prctl(PR_SET_CHILD_SUBREAPER, 1), "no subreaper");
	turns_need(!pthread_create(&thread, NULL, hold, NULL), "no thread");
	turns_need(!guise_answers_start(s, &thread, answer, &server), "no thread");
	return s;
}

struct guise_stack *served_join(void)
{
	struct guise_stack *s;
	int err;

	s = guise_join(ticket, &err);
	if (!s)
		turns_found("a program cannot join: %s", guise_error());
	return s;
}

void served_leave(struct guise_stack *s, pid_t servant)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	const time_t until = time(NULL) + END_S;
	int status;
	pid_t got;

	guise_leave(s);
	while (!(got = waitpid(servant, &status, WNOHANG)) || (got < 0 && errno == EINTR)) {
		if (time(NULL) > until)
			turns_fail("a servant does not end when its program has", servant);
		nanosleep(&moment, NULL);
	}
	if (got == servant && (!WIFEXITED(status) || WEXITSTATUS(status)))
		turns_fail("a servant ended by a signal or an error", status);
}

unsigned int served_members(void)
{
	return __atomic_load_n(&server.members, __ATOMIC_RELAXED);
}

pid_t served_newest(void)
{
	const struct guise_proc *newest = server.s->region->procs;

	for (unsigned int i = 0; i < GUISE_MAX_PROCS; i++) {
		const struct guise_proc *p = &server.s->region->procs[i];

		if (p->used && !p->dead && p->pid != getpid() &&
		    p->start_time >= newest->start_time)
			newest = p;
	}
	return newest->pid;
}

int served_ticket(void)
{
	return ticket;
}

void served_examine(void)
{
	static char last[2048];
	const char *alarm = console_alarm(last, sizeof(last));

	if (alarm)
		turns_found("the kernel says: %s; its last messages:\n%s", alarm, last);
}
