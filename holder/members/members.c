// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the holder learns that a member has ended, and when the holder itself ends.
 * One thread does all of it, in one epoll.
 *
 * A member is watched in two ways, and the first that reports its end counts:
 *
 *	its channel	hangs up when the program ends, by exit or by exec (the channel
 *			is close-on-exec). It does not hang up while a child that has
 *			just forked still has a copy
 *	its process	ends: seen through a pidfd. Where the host has no pidfds (before
 *			Linux 5.3) or refuses them, /proc is looked at each second
 *
 * The links are watched as well, if their backend can tell why a link was lost (a
 * peer that has ended hangs up). The holder reports it, because the programs may
 * have closed their standard error.
 *
 * The holder ends when there are no members and no process has a copy of the
 * ticket, or of a ticket that the control socket gave (holder/control/control.c), and when
 * there are no guests: these have copies of a pipe's end, which only hangs up.
 * Members alone are not enough to go by: between fork and join, and across exec, a
 * process is not a member, and has the ticket.
 */
#include "holder/members/members.h"

#include "holder/carrier/ask.h"
#include "holder/guests/guests.h"
#include "holder/members/outside.h"
#include "holder/members/untraced.h"

#include "host/sys.h"
#include "region/bury.h"
#include "region/ask.h"
#include "region/huge.h"
#include "region/additions.h"
#include "region/vcpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* How soon the pump is woken again if it has not buried the dead yet. */
#define BURIAL_MS 10
/* How often processes without a pidfd are looked at. */
#define LOOK_MS 1000

/* ... and for guests, once all copies of the ticket that guests were to keep are closed. */
#define GUESTS_MS 200

/* From so many members on the region has huge pages; how soon it is looked at again. */
#define HUGE_FROM 8
#define HUGE_NS   1000000000ull

/* What an event is about: the kind above, a process index below. */
enum kind { SIGNALS = 1, TICKET, ALIVE, CHANNEL, PROCESS, LINK, CONTROL };

#define EVENT(kind, proc) ((uint64_t)(kind) << 32 | (proc))

struct watch {
	int epoll;
	struct guise_server *v;
	struct guests *guests;
	bool keep; /* what the plan says */
	struct control *control;
	bool said_lost;
	int pidfd[GUISE_MAX_PROCS];
	bool blind; /* once a pidfd could not be had */
	uint64_t next_look;
	unsigned int huge_at; /* with so many members, or at that time, for huge pages */
	uint64_t huge_next;
};

static int watch_fd(struct watch *w, int fd, enum kind kind, unsigned int proc)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = EVENT(kind, proc) };
	long ret = host_sys(SYS_epoll_ctl, w->epoll, EPOLL_CTL_ADD, fd, &ev);

	return ret < 0 ? guise_fail((int)-ret, "cannot watch descriptor %d: %s", fd,
				    strerror((int)-ret))
		       : 0;
}

/* Closing a descriptor also takes it out of the epoll: nobody has a copy. */
static void member_gone(struct watch *w, unsigned int proc)
{
	const struct guise_region *r = w->v->s->region;
	enum untraced untraced = r->procs[proc].untraced;
	int pid = r->procs[proc].pid;

	guise_server_gone(w->v, proc);
	if (r->dead && !w->said_lost) {
		fprintf(stderr,
			"guise: the stack %s is lost: process %d was killed while it changed it, and "
			"%s; start it again\n",
			r->name, pid, untraced_sentence(untraced));
		w->said_lost = true;
	}
	if (w->pidfd[proc] >= 0)
		host_sys(SYS_close, w->pidfd[proc]);
	w->pidfd[proc] = -1;
}

/* Where the host does not allow it a member is not traced, and its death can lose the stack. */
static void trace(struct guise_server *v, unsigned int proc)
{
	struct guise_proc *p = &v->s->region->procs[proc];
	enum untraced why;
	int err = ask_to_seize(p->pid, &why);
	bool needless;

	/* A child that was short-lived: its zombie cannot be traced, and need not be. */
	needless = !err || err == -ESRCH || (err == -EPERM && guise_server_ended(v, proc));
	if (p->untraced) /* this is a second try */
		v->untraced[p->untraced]--;
	/* Programs that are served cannot harm the stack, and nobody kills servants. */
	needless = needless || v->serve_all || v->for_servant[proc];
	p->untraced = needless ? UNTRACED_NOT : why;
	if (p->untraced)
		v->untraced[p->untraced]++;
}

static int let_go(struct guise_server *v, int pid)
{
	struct guise_region *r = v->s->region;

	for (unsigned int i = 2; i < GUISE_MAX_PROCS; i++) {
		int err;

		if (r->procs[i].used && r->procs[i].serves == pid)
			return guise_fail(ESRCH,
					  "process %d is served, and guise does not trace it: "
					  "attach the debugger",
					  pid);
		if (!r->procs[i].used || r->procs[i].pid != pid)
			continue;
		err = ask_to_release(pid);
		if (err == -EBUSY)
			return guise_fail(
				EBUSY,
				"a thread of process %d waits for a child that it has made "
				"with vfork, and cannot be let go meanwhile; try again",
				pid);
		if (err)
			return guise_fail(-err, "process %d is not traced by guise", pid);
		if (r->procs[i].untraced)
			v->untraced[r->procs[i].untraced]--;
		r->procs[i].untraced = UNTRACED_LET_GO;
		v->untraced[UNTRACED_LET_GO]++;
		return 0;
	}
	return guise_fail(ESRCH, "process %d is not on the stack", pid);
}

/* Runs on another thread: a process that joins or ends at this moment may be found or not. */
static int answer(void *context, enum guise_ask what, unsigned int proc, int32_t about)
{
	struct guise_server *v = context;
	struct guise_region *r = v->s->region;
	const int pid = about ? about : r->procs[proc].pid;

	if (what == GUISE_ASK_BELLS)
		return guise_bells_give(v, proc, (unsigned int)about);
	if (what == GUISE_ASK_LINKS)
		return guise_links_give(v, proc);
	if (what == GUISE_ASK_IDENTITY)
		return guise_server_identify(v, proc, about);
	if (what == GUISE_ASK_LET_GO)
		return let_go(v, pid);
	for (unsigned int i = 2; i < GUISE_MAX_PROCS; i++)
		if (r->procs[i].used && r->procs[i].pid == pid)
			trace(v, i);
	return 0;
}

static int member_pid(const struct watch *w, unsigned int proc)
{
	return w->v->s->region->procs[proc].pid;
}

/* Its process is known. */
static void member_came(struct watch *w, unsigned int proc)
{
	w->pidfd[proc] = (int)host_sys(SYS_pidfd_open, member_pid(w, proc), 0);
	if (w->pidfd[proc] >= 0)
		watch_fd(w, w->pidfd[proc], PROCESS, proc);
	else
		w->blind = true;
}

/* What the stack has come to use since it was last done is to have huge pages, too. */
static void huge_pages(struct watch *w)
{
	const unsigned int members = w->v->members;
	uint64_t now;

	if (members < HUGE_FROM)
		return;
	now = guise_host_now();
	if (members < w->huge_at && now < w->huge_next)
		return;
	guise_huge_collapse(w->v->s);
	w->huge_at = 2 * members;
	w->huge_next = now + HUGE_NS;
}

static void place_given(struct watch *w, unsigned int proc)
{
	huge_pages(w);
	if (member_pid(w, proc))
		member_came(w, proc);
	/* One that cannot be watched would keep the stack for ever. */
	if (watch_fd(w, w->v->control[proc], CHANNEL, proc))
		member_gone(w, proc);
}

static void place_given_by_control(void *w, unsigned int proc)
{
	place_given(w, proc);
}

/* The process has given up its rights, or never had the stack's. Its servant has the old channel
 * now, so closing that does not take it out of the epoll. */
static void becomes_served(struct guise_server *v, unsigned int proc, int old_channel, int pid)
{
	struct watch *w = v->context;

	host_sys(SYS_epoll_ctl, w->epoll, EPOLL_CTL_DEL, old_channel, NULL);
	ask_to_release(pid);
	if (watch_fd(w, v->control[proc], CHANNEL, proc))
		member_gone(w, proc);
}

static void hear(struct watch *w, unsigned int proc)
{
	bool expected = !member_pid(w, proc);

	if (!guise_server_hear(w->v, proc))
		member_gone(w, proc);
	else if (expected && member_pid(w, proc))
		member_came(w, proc);
}

static void serve_ticket(struct watch *w)
{
	int proc;

	while ((proc = guise_server_request(w->v)) != -EAGAIN && proc != -EPIPE)
		if (proc >= 0)
			place_given(w, (unsigned int)proc);
}

/* Only a hang-up counts: what comes in is the pump's. */
static int watch_links(struct watch *w)
{
	int err = 0;

	for (unsigned int i = 0; i < GUISE_MAX_LINKS && !err; i++) {
		const struct guise_link_port *port = &w->v->s->port[i];
		struct epoll_event ev = { .events = 0, .data.u64 = EVENT(LINK, i) };
		long ret;

		if (!port->backend || !port->backend->epitaph)
			continue;
		ret = host_sys(SYS_epoll_ctl, w->epoll, EPOLL_CTL_ADD, port->fd[0], &ev);
		if (ret < 0)
			err = guise_fail((int)-ret, "cannot watch link %u: %s", i,
					 strerror((int)-ret));
	}
	return err;
}

static void link_lost(struct watch *w, unsigned int i)
{
	const struct guise_link_port *port = &w->v->s->port[i];
	char text[256];

	port->backend->epitaph(&w->v->s->region->links[i], text, sizeof(text));
	fprintf(stderr, "guise: %s\n", text);
	host_sys(SYS_epoll_ctl, w->epoll, EPOLL_CTL_DEL, port->fd[0], NULL);
}

/* False: end. */
static bool handle(struct watch *w, uint64_t what)
{
	unsigned int proc = (uint32_t)what;

	switch ((enum kind)(what >> 32)) {
	case SIGNALS:
		return false;
	case TICKET:
		serve_ticket(w);
		break;
	case ALIVE:
		host_sys(SYS_close, w->guests->alive);
		w->guests->alive = -1;
		break;
	case CHANNEL:
		hear(w, proc);
		break;
	case PROCESS:
		member_gone(w, proc);
		break;
	case LINK:
		link_lost(w, proc);
		break;
	case CONTROL:
		control_turn(w->control, place_given_by_control, w);
		break;
	}
	return true;
}

/* Members without a pidfd; how long until the next look, in milliseconds. */
static int look(struct watch *w)
{
	uint64_t now = guise_host_now();

	if (!w->blind || !w->v->members)
		return -1;
	if (now >= w->next_look) {
		for (unsigned int i = 0; i < GUISE_MAX_PROCS; i++)
			if (w->v->control[i] >= 0 && w->pidfd[i] < 0 && guise_server_ended(w->v, i))
				member_gone(w, i);
		w->next_look = now + LOOK_MS * 1000000ull;
	}
	return (int)((w->next_look - now) / 1000000) + 1;
}

/* Whether the stack stays even if no process has it. */
static bool stays(const struct watch *w)
{
	int until_end;

	return (w->keep || control_keeps(w->control)) && !control_ending(w->control, &until_end);
}

static int patience(struct watch *w)
{
	int until_look = look(w), until_end;

	if (control_ending(w->control, &until_end) && (until_look < 0 || until_look > until_end))
		until_look = until_end;
	if (!w->v->members && w->v->ticket < 0 && w->guests->alive < 0 &&
	    guests_interface(w->guests) && !stays(w) && (until_look < 0 || until_look > GUESTS_MS))
		until_look = GUESTS_MS;
	if (guise_bury_unfinished(w->v->s) && (until_look < 0 || until_look > BURIAL_MS))
		return BURIAL_MS;
	return until_look;
}

/* Whether the stack still has members, or may get one. */
static bool wanted(const struct watch *w)
{
	int until_end = 1;

	if (stays(w))
		return true;
	control_ending(w->control, &until_end);
	return until_end && (w->v->members || w->v->ticket >= 0 || w->guests->alive >= 0 ||
			     control_has_tickets(w->control) || guests_are_there(w->guests));
}

int members_serve(struct guise_server *v, struct guests *guests, struct control *control,
		  int signals, bool keep)
{
	struct epoll_event ev;
	struct watch w = { .v = v, .guests = guests, .keep = keep, .control = control };
	bool going = true, answering;
	pthread_t answers;
	int err;
	int timeout;
	long n;

	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		w.pidfd[i] = -1;
	answering = !guise_answers_start(v->s, &answers, answer, v);
	v->known = trace;
	v->let_go = let_go;
	v->outside = outside_note;
	v->becomes_served = becomes_served;
	v->context = &w;
	w.epoll = (int)host_sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (w.epoll < 0) {
		if (answering)
			guise_answers_stop(v->s, answers);
		return guise_fail(-w.epoll, "no epoll: %s", strerror(-w.epoll));
	}
	err = watch_fd(&w, signals, SIGNALS, 0);
	if (!err && v->ticket >= 0)
		err = watch_fd(&w, v->ticket, TICKET, 0);
	/* Nothing is read from it: it only hangs up. */
	if (!err && guests->alive >= 0)
		err = watch_fd(&w, guests->alive, ALIVE, 0);
	if (!err)
		err = watch_links(&w);
	if (!err && control_fd(control) >= 0)
		err = watch_fd(&w, control_fd(control), CONTROL, 0);
	while (!err && going && wanted(&w)) {
		timeout = patience(&w);
		/* The last one may just have been found gone. */
		if (!wanted(&w))
			break;
		/* One at a time: what one closes is not heard of by the next, and its place
		 * may be another's by then. */
		n = host_sys(SYS_epoll_pwait, w.epoll, &ev, 1, timeout, NULL, 0);
		if (n < 0 && n != -EINTR)
			err = guise_fail((int)-n, "epoll: %s", strerror((int)-n));
		if (n > 0)
			going = handle(&w, ev.data.u64);
	}
	ask_deadline(END_SECONDS);
	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		if (w.pidfd[i] >= 0)
			host_sys(SYS_close, w.pidfd[i]);
	host_sys(SYS_close, w.epoll);
	v->known = NULL;
	v->let_go = NULL;
	v->outside = NULL;
	v->becomes_served = NULL;
	if (answering)
		guise_answers_stop(v->s, answers);
	return err;
}
