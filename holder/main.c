// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-holder: the process that a stack belongs to. Started by the command
 * line with three descriptors, it lives through these stages:
 *
 * 1 begin	arguments; a session of its own, so that Ctrl-C in the program's
 *		terminal does not reach it; the signals that end it become a
 *		descriptor, in every thread that follows
 * 2 plan	the plan is read to its end and parsed: what has to be undone is
 *		known as soon as its line is read, and is undone whatever follows
 * 3 build	the stack is booted and configured, line by line; then the status
 *		says "ready"
 * 4 serve	members come and go (members.c), and commands ask for things
 *		(control.c); the pump and the relays (relay.c) run in threads of
 *		their own
 * 5 end	what was sent is delivered (drain.c), the counters are read, the
 *		members are told, the stack ends, and what was started for its links
 * 6 undo	the plan's program undoes what was changed on the host; then the
 *		status says "summary ..." and closes
 *
 * 5 and 6 have deadlines (deadline.c): after that, 5 is left as it is, and the program
 * of 6 is killed.
 *
 * An error in 1 to 3 is said on the status as "error LINE: sentence" (line 0:
 * not the plan's fault), and the holder goes on to 6 with exit status 1.
 * docs/plan.md describes the plan and the descriptors.
 */
#include "holder/control/control.h"
#include "holder/deadline.h"
#include "holder/drain.h"
#include "holder/guests/enter.h"
#include "holder/members/members.h"
#include "holder/plan.h"
#include "holder/relay/relay.h"
#include "holder/servant/servant.h"
#include "holder/summary.h"

#include "host/sys.h"
#include "link/link.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_SECONDS  10 /* for each look whether all is delivered, and for the end of all threads */
#define UNDO_SECONDS 20 /* which waits for up to 10 s for another guise */

struct args {
	int plan, ticket, alive, status;
};

static int usage(void)
{
	fprintf(stderr, "usage: guise-holder --plan FD --ticket|--alive FD --status FD "
			"[--note TEXT]\nStarted by guise run; see docs/plan.md.\n");
	return 2;
}

static bool parse_args(int argc, char **argv, struct args *a)
{
	struct {
		const char *name;
		int *fd;
	} known[] = {
		{ "--plan", &a->plan },
		{ "--ticket", &a->ticket },
		{ "--alive", &a->alive },
		{ "--status", &a->status },
	};

	a->plan = a->ticket = a->alive = a->status = -1;
	for (int i = 1; i + 1 < argc; i += 2)
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(argv[i], known[k].name)) {
				char *end;

				*known[k].fd = (int)strtol(argv[i + 1], &end, 10);
				if (end == argv[i + 1] || *end)
					return false;
			}
	/* --note is for users that read the command line. */
	return (argc == 7 || (argc == 9 && !strcmp(argv[7], "--note"))) && a->plan >= 0 &&
	       (a->ticket >= 0) != (a->alive >= 0) && a->status >= 0;
}

static void say(int status, const char *text)
{
	size_t len = strlen(text);

	/* The command that started us may be gone: then nobody reads this. */
	while (len) {
		long n = host_sys(SYS_write, status, text, len);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void say_error(int status, int line)
{
	char text[600];

	snprintf(text, sizeof(text), "error %d: %s\n", line, guise_error());
	say(status, text);
}

/* The whole plan, terminated; NULL with the error set. */
static char *read_plan(int fd)
{
	char *text = malloc(PLAN_MAX_BYTES + 1);
	size_t have = 0;
	long n = 0;

	if (!text) {
		guise_fail(ENOMEM, "out of memory for the plan");
		return NULL;
	}
	while (have <= PLAN_MAX_BYTES) {
		n = host_sys(SYS_read, fd, text + have, PLAN_MAX_BYTES + 1 - have);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	host_sys(SYS_close, fd);
	if (n < 0)
		guise_fail((int)-n, "cannot read the plan: %s", strerror((int)-n));
	else if (have > PLAN_MAX_BYTES)
		guise_fail(EFBIG, "the plan is longer than %u bytes", PLAN_MAX_BYTES);
	else if (memchr(text, '\0', have))
		guise_fail(EINVAL, "the plan holds a zero byte");
	else {
		text[have] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* Stage 1: the descriptor on which the signals that end us arrive. */
static int begin(void)
{
	struct rlimit limit;
	sigset_t set;

	/* Fails for the leader of a process group, such as under a shell; then
	 * Ctrl-C does reach us, and is meant for us. */
	setsid();
	signal(SIGPIPE, SIG_IGN);
	/* What a user lets programs write is not meant for stacks, as far as that may be raised. */
	signal(SIGXFSZ, SIG_IGN);
	if (!getrlimit(RLIMIT_FSIZE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits for a child to end; one that takes too long is killed. */
static bool await(pid_t pid, int *how)
{
	const uint64_t until = guise_host_now() + UNDO_SECONDS * 1000000000ull;
	const struct timespec look = { 0, 5000000 };
	pid_t got;

	while (!(got = waitpid(pid, how, WNOHANG)) || (got < 0 && errno == EINTR)) {
		if (guise_host_now() > until)
			kill(pid, SIGKILL);
		nanosleep(&look, NULL);
	}
	return got == pid;
}

/* Stage 6. The program gets none of our signals, and no descriptor of ours. */
static bool undo(const struct plan *p)
{
	int how;
	pid_t pid;

	if (!p->undo_program)
		return true;
	pid = fork();
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		unsetenv("LD_PRELOAD");
		unsetenv("GUISE_STACK");
		execl(p->undo_program, p->undo_program, "undo", p->undo_journal, (char *)NULL);
		_exit(127);
	}
	if (pid > 0 && await(pid, &how) && WIFEXITED(how) && !WEXITSTATUS(how))
		return true;
	fprintf(stderr, "guise-holder: \"%s undo %s\" failed; run it again to clean up the host\n",
		p->undo_program, p->undo_journal);
	return false;
}

/* Stage 5 does not come to its end. What this process has goes with it. */
static void by_force(void *arg)
{
	fprintf(stderr, "guise-holder: the stack's end takes too long; it is ended by force\n");
	undo(arg);
	_exit(1);
}

/* Stages 3 to 5; true when all went well. */
static bool live(struct plan *p, const struct args *a, int signals, char **json)
{
	static struct guise_server server;
	int line = plan_apply(p), err = 0, ms;
	bool cut;

	deadline_init(END_SECONDS, by_force, p);
	if (line) {
		say_error(a->status, line);
	} else {
		p->relay->guests.alive = a->alive;
		err = guise_server_init(&server, p->s, a->ticket);
		server.serve = p->served ? servant_begin : NULL;
		if (!err && relay_wanted(p->relay))
			err = relay_start(p->relay, p->s);
		if (!err)
			err = control_start(p->control, &server, &p->relay->guests);
		if (err) {
			say_error(a->status, 0);
		} else {
			say(a->status, "ready\n");
			err = members_serve(&server, &p->relay->guests, p->control, signals,
					    p->keep);
			if (err)
				fprintf(stderr, "guise-holder: %s\n", guise_error());
			relay_unpublish(p->relay);
			cut = server.members && control_ending(p->control, &ms);
			if (cut) /* they are told, and nothing waits for one that is stopped */
				guise_declare_dead(p->s);
			control_end(p->control);
			if (!cut && !server.members)
				drain(p->s, p->relay, p->control, signals);
			deadline_renew();
			*json = summary(&server, cut, guests_interface(&p->relay->guests));
			control_silence(p->control);
			relay_stop(p->relay);
			guise_server_end(&server);
		}
	}
	if (p->s) {
		deadline_renew();
		guise_links_end(p->s);
		guise_leave(p->s);
	}
	deadline_met();
	return !line && !err;
}

int main(int argc, char **argv)
{
	char *json = NULL, *text;
	struct plan p = { 0 };
	bool good = false;
	struct args a;
	int signals, bad;

	/* Its plan, and the image, are words of the caller. */
	if (getauxval(AT_SECURE)) {
		fprintf(stderr,
			"guise-holder: this file gives more rights than its caller has (setuid, "
			"setgid or capabilities), which guise is not made for; take them away\n");
		return 1;
	}
	if (enter_wanted(argc, argv))
		return enter(argc, argv);
	if (servant_wanted(argc, argv))
		return servant(argc, argv);
	if (!parse_args(argc, argv, &a))
		return usage();
	signals = begin();
	if (signals < 0) {
		guise_fail(errno, "no signalfd: %s", strerror(errno));
		say_error(a.status, 0);
		return 1;
	}
	/* The undo program must not keep them open. */
	fcntl(a.ticket >= 0 ? a.ticket : a.alive, F_SETFD, FD_CLOEXEC);
	fcntl(a.status, F_SETFD, FD_CLOEXEC);

	text = read_plan(a.plan);
	if (!text) {
		say_error(a.status, 0);
		return 1;
	}
	bad = plan_parse(&p, text);
	if (bad)
		say_error(a.status, bad);
	else
		good = live(&p, &a, signals, &json);
	control_stop(p.control);
	if (!undo(&p))
		good = false;
	if (json) {
		say(a.status, "summary ");
		say(a.status, json);
		say(a.status, "\n");
	}
	free(json);
	plan_free(&p);
	free(text);
	return good ? 0 : 1;
}
