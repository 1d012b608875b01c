// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-holder: the process that a stack belongs to. Started by the command line with three
 * descriptors, it becomes two: the warden, which has all rights of whoever started it, and the
 * carrier, which has those of the stack's user and no capability. They live through these stages:
 *
 * 1 begin	arguments; a session of its own, so that Ctrl-C in the program's
 *		terminal does not reach it; the signals that end it wait
 * 2 plan	the plan is read to its end and parsed: what has to be undone is
 *		known as soon as its line is read, and is undone whatever follows
 *
 * Then the warden forks the carrier, serves it, and waits for its end (warden/warden.c). The
 * carrier:
 *
 * 3 isolate	it gives up rights, files and namespaces (isolation.c)
 * 4 build	the stack is booted and configured, line by line; then the last part of the
 *		isolation comes, and the status says "ready"
 * 5 serve	members come and go (members.c), and commands ask for things
 *		(control.c); the pump and the relays (relay.c) run in threads of
 *		their own
 * 6 end	what was sent is delivered (drain.c), the counters are read, the
 *		members are told, the stack ends, and what was started for its links;
 *		the status says "summary ..."
 *
 * And the warden again:
 *
 * 7 undo	the plan's program undoes what was changed on the host; then the
 *		status closes
 *
 * 6 and 7 have deadlines: after that, the carrier is killed, and so is the program of 7.
 *
 * An error in 1 to 4 is said on the status as "error LINE: sentence" (line 0:
 * not the plan's fault), and the holder goes on to 7 with exit status 1.
 * docs/plan.md describes the plan and the descriptors.
 */
#include "holder/carrier/ask.h"
#include "holder/carrier/rights.h"
#include "holder/carrier/sections.h"
#include "holder/control/control.h"
#include "holder/drain.h"
#include "holder/guests/enter.h"
#include "holder/isolation.h"
#include "holder/members/members.h"
#include "holder/plan.h"
#include "holder/relay/relay.h"
#include "holder/servant/servant.h"
#include "holder/summary.h"
#include "holder/warden/warden.h"

#include "host/fd.h"
#include "host/sys.h"
#include "link/link.h"
#include "region/bell.h"
#include "region/confined.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

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

/* What the carrier begins with. */
struct life {
	struct plan *plan;
	const struct args *args;
	struct isolation_user user;
};

/* The descriptor on which the signals that end it arrive. */
static int take_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Those that every stack has are made while there are files. */
static int first_bells[GUISE_BELLS_FIRST];
static unsigned int bells_left;

static int next_bell(void)
{
	return bells_left ? first_bells[--bells_left] : ask_for_bell();
}

static int start_servant(int channel, const struct ucred *who, int end)
{
	return ask_for_servant(channel, who->pid, end);
}

/* Stage 3. 0 or -errno with a sentence. */
static int isolate(const struct life *l, unsigned int *left)
{
	int err = guise_confine(&l->plan->options);

	if (err)
		return err;
	while (bells_left < GUISE_BELLS_FIRST) {
		int fd = guise_bell_make();

		if (fd < 0)
			return guise_fail(-fd, "no descriptor to wake threads by: %s",
					  strerror(-fd));
		first_bells[bells_left++] = fd;
	}
	guise_confined.bell = next_bell;
	guise_confined.process_file = ask_for_process_file;
	guise_confined.kill_passt = ask_to_kill_passt;
	err = isolation_begin(&l->user, left);
	if (err)
		return err;
	/* The stack ends with its warden, also if that is killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return getppid() == ask_holder() ? 0 : guise_fail(ESRCH, "the warden was killed");
}

/* Stages 4 to 6; true when all went well. */
static bool live(struct plan *p, const struct args *a, int signals, int questions,
		 unsigned int *left)
{
	static struct guise_server server;
	int line = plan_apply(p), err = 0, ms;
	struct sections *sections = NULL;
	char *json = NULL;
	bool cut;

	if (line) {
		say_error(a->status, line);
	} else {
		p->relay->guests.alive = a->alive;
		err = guise_server_init(&server, p->s, a->ticket);
		server.serve = start_servant;
		server.serve_all = p->served;
		server.is_member = rights_of_member;
		server.identify = rights_identify;
		server.tracer = ask_holder();
		if (!err) {
			sections = sections_start(p->s, questions);
			err = sections ? 0 : -ENOMEM;
		}
		if (!err && relay_wanted(p->relay))
			err = relay_start(p->relay, p->s);
		isolation_seal(false, left);
		if (!err)
			err = control_start(p->control, &server, p);
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
			ask_deadline(END_SECONDS);
			json = summary(&server, cut, guests_interface(&p->relay->guests), *left);
			control_silence(p->control);
			relay_stop(p->relay);
			guise_server_end(&server);
		}
	}
	if (p->s) {
		ask_deadline(END_SECONDS);
		sections_stop(sections);
		guise_links_end(p->s);
		guise_leave(p->s);
	}
	if (json) {
		say(a->status, "summary ");
		say(a->status, json);
		say(a->status, "\n");
	}
	free(json);
	return !line && !err;
}

/* The carrier's whole life: its exit status. */
static int carry(void *arg, const struct carrier *c)
{
	const struct life *l = arg;
	int signals = take_signals();
	unsigned int left = 0;

	ask_begin(c->requests, getppid());
	if (signals < 0)
		guise_fail(errno, "no signalfd: %s", strerror(errno));
	if (signals < 0 || isolate(l, &left)) {
		say_error(l->args->status, 0);
		return 1;
	}
	return live(l->plan, l->args, signals, c->questions, &left) ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };
	struct life life = { .plan = &p };
	bool good = false;
	struct args a;
	char *text;
	int bad;

	/* Its plan, and the image, are words of the caller. */
	if (getauxval(AT_SECURE)) {
		fprintf(stderr,
			"guise-holder: this file gives more rights than its caller has (setuid, "
			"setgid or capabilities), which guise is not made for; take them away\n");
		return 1;
	}
	if (enter_wanted(argc, argv))
		return enter(argc, argv);
	if (isolation_wanted(argc, argv))
		return isolation_try();
	if (servant_wanted(argc, argv))
		return servant(argc, argv);
	if (!parse_args(argc, argv, &a))
		return usage();
	warden_begin();
	/* What it was given, and what its caller has left open, is not for servants, nor for the
	 * program that undoes. */
	guise_fd_end_at_exec(STDERR_FILENO + 1);
	text = read_plan(a.plan);
	if (!text) {
		say_error(a.status, 0);
		return 1;
	}
	life.args = &a;
	isolation_self(&life.user);
	bad = plan_parse(&p, text);
	if (p.user)
		life.user = *p.user;
	if (bad)
		say_error(a.status, bad);
	else
		good = warden(&p, &life.user, a.status, carry, &life);
	control_stop(p.control);
	if (!warden_undo(&p))
		good = false;
	plan_free(&p);
	free(text);
	return good ? 0 : 1;
}
