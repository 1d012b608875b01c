// SPDX-License-Identifier: GPL-2.0-only
/*
 * The holder's side of the join protocol; join.h describes it.
 *
 * Nothing here waits: requests are taken one at a time as they come, and a joiner whose
 * fresh channel has no room for the answer is refused. A malformed request is counted,
 * and answered if it came with a channel to answer on; its descriptors are closed.
 *
 * A member has its entry in region->procs before it gets the answer, and keeps it
 * after its death until the reaper in the port has ended its tasks. The entry of an
 * expected process (heir.h) has pid 0 until that process reports on its channel.
 */
#include "region/serve.h"
#include "host/locks.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/bury.h"
#include "region/confined.h"
#include "region/join.h"
#include "region/process.h"
#include "region/vcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A message as it came over the ticket. */
struct incoming {
	union {
		struct guise_join_request request;
		struct guise_join_outside outside;
	};
	long len;
	struct guise_message with;
};

/*
 * The holder's descriptors: FDS_OF_MEMBER for each member (its channel and its pidfd), and
 * FDS_BESIDE for tickets, guests and connections of relays; where there are few descriptors, a
 * quarter of those that are left.
 */
#define FDS_OF_MEMBER 2
#define FDS_BESIDE    256
#define NO_USER       65534u                /* what the host says for a user that it cannot name */
#define MOST_MEMBERS  (GUISE_MAX_PROCS - 2) /* nobody's place, and the holder's */

static uint64_t open_fds(uint64_t limit)
{
	uint64_t n = 0;

	for (uint64_t fd = 0; fd < limit; fd++)
		n += host_sys(SYS_fcntl, fd, F_GETFD) >= 0;
	return n;
}

/* All that it has already is open. */
static void raise_limit(struct guise_server *v)
{
	struct rlimit limit = { 1024, 1024 };
	uint64_t left;

	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	if (limit.rlim_cur < limit.rlim_max) {
		const struct rlimit all = { limit.rlim_max, limit.rlim_max };

		if (!host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &all, NULL))
			limit.rlim_cur = all.rlim_cur;
	}
	v->limit = limit.rlim_cur;
	v->most = MOST_MEMBERS;
	if (v->limit >= 4 * GUISE_MAX_PROCS)
		return;
	left = v->limit - open_fds(v->limit);
	left -= left / 4 < FDS_BESIDE ? left / 4 : FDS_BESIDE;
	if (left / FDS_OF_MEMBER < v->most)
		v->most = (unsigned int)(left / FDS_OF_MEMBER);
}

int guise_server_init(struct guise_server *v, struct guise_stack *s, int ticket)
{
	int on = 1;
	long ret;

	memset(v, 0, sizeof(*v));
	v->s = s;
	v->ticket = ticket;
	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		v->control[i] = -1;
	ret = ticket < 0
		      ? 0
		      : host_sys(SYS_setsockopt, ticket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	if (ret < 0)
		return guise_fail((int)-ret, "the ticket (descriptor %d) is not a socket: %s",
				  ticket, strerror((int)-ret));
	ret = host_sys(SYS_pipe2, v->alive, O_CLOEXEC | O_NONBLOCK);
	if (ret < 0)
		return guise_fail((int)-ret, "no pipe for the members: %s", strerror((int)-ret));
	raise_limit(v);
	return 0;
}

/* False when there is no message. */
static bool receive(int from, struct incoming *in)
{
	memset(&in->outside, 0, sizeof(in->outside));
	in->len = guise_message_receive(from, &in->outside, sizeof(in->outside), &in->with);
	return in->len >= 0;
}

static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd };
	struct timespec now = { 0 };

	return host_sys(SYS_ppoll, &p, 1, &now, NULL, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* Whether the channel is one that the sender made itself. */
static int check_sender(const struct incoming *in)
{
	struct ucred maker = { 0 };
	socklen_t len = sizeof(maker), size = sizeof(int);
	int type = 0;

	if (host_sys(SYS_getsockopt, in->with.fd[0], SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    type != SOCK_SEQPACKET ||
	    host_sys(SYS_getsockopt, in->with.fd[0], SOL_SOCKET, SO_PEERCRED, &maker, &len) < 0)
		return guise_fail(EPROTO,
				  "join: process %d sent something that is not a SOCK_SEQPACKET "
				  "socket",
				  in->with.sender.pid);
	if (!in->with.sender.pid || maker.pid != in->with.sender.pid)
		return guise_fail(EPERM, "join: process %d sent a channel that process %d made",
				  in->with.sender.pid, maker.pid);
	return 0;
}

bool guise_server_ended(const struct guise_server *v, unsigned int proc)
{
	const struct guise_proc *member = &v->s->region->procs[proc];
	struct guise_process now;

	if (!member->start_time) /* never could be read */
		return false;
	return !guise_process_read(member->pid, &now) ||
	       guise_process_over(&now, member->start_time);
}

/* Who is in a place, but for its pid, which others look at. */
static void enter_place(struct guise_proc *p, const struct ucred *who)
{
	struct guise_process process;
	struct guise_thread thread;

	guise_process_read(who->pid, &process);
	p->start_time = process.start_time;
	p->uid = who->uid;
	p->gid = who->gid;
	/* A holder in a user namespace of its own is not told which other user it is. */
	if (guise_confined.on && who->uid == NO_USER && guise_thread_read(who->pid, &thread)) {
		p->uid = thread.user;
		p->gid = thread.group;
	}
}

static int is_full(const struct guise_server *v)
{
	if (v->most < MOST_MEMBERS)
		return guise_fail(EAGAIN,
				  "join: the stack has %u processes already, and takes no more: "
				  "its holder may have %" PRIu64 " descriptors (ulimit -Hn), and "
				  "each process takes %d",
				  v->members, v->limit, FDS_OF_MEMBER);
	return guise_fail(EAGAIN, "join: the stack has %d processes already, and takes no more",
			  MOST_MEMBERS);
}

/* A place for that process; who is NULL: it is still to come. */
static int claim_proc(struct guise_server *v, const struct ucred *who)
{
	struct guise_region *region = v->s->region;

	if (v->members >= v->most)
		return is_full(v);
	for (int i = 0; i < GUISE_MAX_PROCS; i++) {
		struct guise_proc *p = &region->procs[i];

		if (__atomic_load_n(&p->used, __ATOMIC_ACQUIRE))
			continue;
		memset(p, 0, sizeof(*p));
		if (who) {
			enter_place(p, who);
			p->pid = who->pid;
		}
		__atomic_store_n(&p->used, 1, __ATOMIC_RELEASE);
		return i;
	}
	return is_full(v); /* dead members that are not buried yet have places, too */
}

/* The stack's descriptors in their order on the wire; their number. */
static int gather(const struct guise_server *v, struct guise_join_reply *r, int *fd)
{
	const struct guise_stack *s = v->s;
	int n = 0;

	_Static_assert(GUISE_JOIN_FIXED_FDS + GUISE_BELLS_FIRST +
				       GUISE_MAX_LINKS * GUISE_LINK_FDS <=
			       GUISE_MESSAGE_FDS,
		       "one message carries them");
	fd[n++] = s->memfd;
	fd[n++] = s->monitor_fd;
	fd[n++] = s->image_fd;
	fd[n++] = v->alive[0];
	r->tracer = v->tracer;
	r->bells = GUISE_BELLS_FIRST;
	for (unsigned int i = 0; i < r->bells; i++)
		fd[n++] = s->bell[i];
	guise_own_lock(GUISE_LOCK_ASK); /* another thread may add or remove links */
	r->links_now = s->region->links_now;
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		if (!s->region->links[i].used)
			continue;
		while (r->links[i] < GUISE_LINK_FDS && s->port[i].fd[r->links[i]] >= 0)
			fd[n++] = s->port[i].fd[r->links[i]++];
	}
	guise_own_unlock(GUISE_LOCK_ASK);
	return n;
}

static int answer(int channel, const struct guise_join_reply *r, const int *fd)
{
	return guise_message_send(channel, r, sizeof(*r), fd, r->fds);
}

void guise_server_refuse(int channel, int err)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DIRECT);

	r.status = err;
	snprintf(r.error, sizeof(r.error), "%s", guise_error());
	answer(channel, &r, NULL);
}

/* Its process is heard on the channel. */
static void give_place(struct guise_server *v, int proc, int channel)
{
	v->control[proc] = channel;
	v->members++;
	v->joined++;
}

/* Nobody has seen it. */
static void take_back(struct guise_server *v, int proc)
{
	__atomic_store_n(&v->s->region->procs[proc].used, 0, __ATOMIC_RELEASE);
}

/* Where programs of that user are counted; a free one if none were; NULL if all are others'. */
static struct guise_served_by_user *count_of(struct guise_server *v, uint32_t uid)
{
	struct guise_served_by_user *u = v->served_by_user, *unused = NULL;

	for (; u < v->served_by_user + sizeof(v->served_by_user) / sizeof(*u); u++) {
		if (u->n && u->uid == uid)
			return u;
		if (!u->n && !unused)
			unused = u;
	}
	return unused;
}

/* A servant in that place, of a program with that pid, of that user. */
static void note_servant(struct guise_server *v, unsigned int proc, int32_t pid, uint32_t uid)
{
	struct guise_served_by_user *u = count_of(v, uid);

	v->s->region->procs[proc].serves = pid;
	v->user_of[proc] = uid;
	v->served++;
	if (!u)
		return;
	u->uid = uid;
	u->n++;
}

/* The program in that place is none that was served. */
static void forget_servant(struct guise_server *v, unsigned int proc)
{
	struct guise_served_by_user *u = count_of(v, v->user_of[proc]);

	v->served -= v->served > 0; /* members can write what says whose servant it is */
	if (u && u->n)
		u->n--;
}

/* A served program has become a member, in that place: it counts once, and as a member. */
static void note_risen(struct guise_server *v, unsigned int proc, pid_t pid)
{
	struct guise_proc *p = v->s->region->procs;

	if (p[proc].serves)
		forget_servant(v, proc);
	p[proc].serves = 0;
	for (unsigned int i = 0; i < GUISE_MAX_PROCS; i++) {
		if (v->control[i] < 0 || p[i].serves != pid)
			continue;
		forget_servant(v, i); /* it ends, as its program does not need it any more */
		v->joined--;
		return;
	}
}

/* Where a servant expects one for a process to come, that is one as well. */
static void note_heir(struct guise_server *v, unsigned int proc, pid_t parent)
{
	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		if (v->control[i] >= 0 && v->s->region->procs[i].pid == parent &&
		    v->s->region->procs[i].serves) {
			note_servant(v, proc, GUISE_SERVES_NOBODY, v->user_of[i]);
			return;
		}
}

/* Makes the sender a member, or the process that it expects; its index, or -errno. */
static int admit(struct guise_server *v, const struct incoming *in)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DIRECT);
	bool expected = in->request.kind == GUISE_JOIN_HEIR;
	int fd[GUISE_MESSAGE_FDS], proc, on = 1, ret;

	proc = claim_proc(v, expected ? NULL : &in->with.sender);
	if (proc < 0)
		return proc;
	if (v->known && !expected)
		v->known(v, (unsigned int)proc);
	v->s->region->procs[proc].expected = expected;
	v->for_servant[proc] = false;
	r.proc = (uint32_t)proc;
	r.base = v->s->region->base;
	r.fds = expected ? 0 : (uint32_t)gather(v, &r, fd);
	if (expected) /* before it is used: the kernel then names the sender of each message */
		host_sys(SYS_setsockopt, in->with.fd[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	ret = answer(in->with.fd[0], &r, fd);
	if (ret < 0) {
		take_back(v, proc);
		return guise_fail(-ret, "join: process %d cannot be answered: %s",
				  in->with.sender.pid, strerror(-ret));
	}
	give_place(v, proc, in->with.fd[0]);
	if (expected)
		note_heir(v, (unsigned int)proc, in->with.sender.pid);
	return proc;
}

/* Whether the sender may not map the region. */
static bool is_served(const struct guise_server *v, const struct ucred *who)
{
	return v->serve && (v->serve_all || (v->is_member && !v->is_member(who)));
}

int guise_server_identify(struct guise_server *v, unsigned int proc, pid_t program)
{
	struct guise_region *r = v->s->region;

	return v->identify ? v->identify(program, r->privileges == GUISE_PRIVILEGES_HOST,
					 r->procs[proc].identity)
			   : -ENOSYS;
}

/*
 * Starts a servant, which is expected in that place; it answers on the channel, for the process
 * `who`. 0, or -errno with the sentence.
 */
static int have_served(struct guise_server *v, int proc, int channel, const struct ucred *who)
{
	int pair[2], on = 1, err;
	bool named;
	long ret;

	ret = host_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	if (ret < 0)
		return guise_fail((int)-ret, "join: no socket pair: %s", strerror((int)-ret));
	host_sys(SYS_setsockopt, pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	v->s->region->procs[proc].expected = true;
	v->for_servant[proc] = true;
	v->control[proc] = pair[0];
	/* The warden knows users whom this process's namespace has no number for. */
	named = guise_server_identify(v, (unsigned int)proc, who->pid) >= 0;
	note_servant(v, (unsigned int)proc, who->pid,
		     named ? (uint32_t)v->s->region->procs[proc].identity[0] : who->uid);
	/* Without a servant the place is buried when the end is closed. */
	err = v->serve(channel, who, pair[1]);
	if (err)
		guise_server_refuse(channel, -EAGAIN);
	host_sys(SYS_close, pair[1]);
	return 0;
}

/* A place for the servant of a process that asks for itself; its index, or -errno. */
static int admit_served(struct guise_server *v, const struct incoming *in)
{
	int proc = claim_proc(v, NULL), err;

	if (proc < 0)
		return proc;
	err = have_served(v, proc, in->with.fd[0], &in->with.sender);
	if (err) {
		take_back(v, proc);
		return err;
	}
	give_place(v, proc, v->control[proc]);
	host_sys(SYS_close, in->with.fd[0]);
	return proc;
}

static bool is_note(const struct incoming *in)
{
	const struct guise_join_request *q = &in->request;

	return in->len == (long)sizeof(in->outside) && in->with.fds == 1 &&
	       q->magic == GUISE_JOIN_MAGIC && q->abi == GUISE_ABI && q->kind == GUISE_JOIN_OUTSIDE;
}

static void take_note(struct guise_server *v, struct incoming *in)
{
	const struct guise_join_reply r = { .magic = GUISE_JOIN_MAGIC,
					    .abi = GUISE_ABI,
					    .served = GUISE_JOIN_DONE };

	in->outside.program[sizeof(in->outside.program) - 1] = '\0';
	if (v->outside)
		v->outside(&in->outside);
	answer(in->with.fd[0], &r, NULL);
}

int guise_server_request_over(struct guise_server *v, int *ticket)
{
	struct incoming in;
	int ret;

	if (*ticket < 0)
		return -EPIPE;
	if (!receive(*ticket, &in) || (!in.len && !in.with.sender.pid)) {
		/* Zero bytes without a sender: the end, not an empty message. */
		if (!hung_up(*ticket))
			return -EAGAIN;
		host_sys(SYS_close, *ticket);
		*ticket = -1;
		return -EPIPE;
	}
	if (is_note(&in)) {
		take_note(v, &in);
		guise_message_close(&in.with);
		return -ENOMSG;
	}
	ret = guise_join_check_request(&in.request, (size_t)in.len, (int)in.with.fds);
	if (!ret && in.request.kind > GUISE_JOIN_HEIR)
		ret = guise_fail(EPROTO, "join: a request that belongs on a private channel");
	if (!ret)
		ret = check_sender(&in);
	if (!ret && v->s->region->dead)
		ret = guise_fail(ENETDOWN, "join: the stack %s is lost", v->s->region->name);
	if (!ret)
		ret = in.request.kind == GUISE_JOIN_NOW && is_served(v, &in.with.sender)
			      ? admit_served(v, &in)
			      : admit(v, &in);
	if (ret >= 0)
		return ret;
	v->refused++;
	if (in.with.fds)
		guise_server_refuse(in.with.fd[0], ret);
	guise_message_close(&in.with);
	return ret == -EAGAIN || ret == -EPIPE ? -EPROTO : ret;
}

int guise_server_request(struct guise_server *v)
{
	return guise_server_request_over(v, &v->ticket);
}

/*
 * The process that has come to its place is to be served: its servant takes the place, with all
 * that was prepared in it, and has the end on which the process waits.
 */
static int serve_place(struct guise_server *v, unsigned int proc, const struct ucred *who)
{
	int old = v->control[proc], err;

	if (!v->serve)
		return guise_fail(EOPNOTSUPP, "join: this stack has no servants");
	err = have_served(v, (int)proc, old, who);
	if (err) {
		guise_server_refuse(old, err);
		return err;
	}
	if (v->becomes_served)
		v->becomes_served(v, proc, old, who->pid);
	host_sys(SYS_close, old);
	return 0;
}

/* Its place is free again when it closes the end. */
static int stay_served(struct guise_server *v, unsigned int proc)
{
	int err = guise_fail(EPERM, "join: it has other rights than its stack");

	guise_server_refuse(v->control[proc], err);
	return err;
}

/* The process that was expected in a place has come. */
static int arrived(struct guise_server *v, unsigned int proc, const struct incoming *in)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DIRECT);
	struct guise_proc *member = &v->s->region->procs[proc];
	int fd[GUISE_MESSAGE_FDS], err;

	err = guise_join_check_request(&in->request, (size_t)in->len, (int)in->with.fds);
	if (!err && (in->request.kind <= GUISE_JOIN_HEIR || member->pid || !in->with.sender.pid ||
		     (v->for_servant[proc] && in->request.kind == GUISE_JOIN_SERVE)))
		err = guise_fail(EPROTO, "join: nobody is expected here");
	if (err)
		return err;
	if (in->request.kind != GUISE_JOIN_GREET && !v->for_servant[proc] &&
	    (in->request.kind == GUISE_JOIN_SERVE || is_served(v, &in->with.sender)))
		return in->request.kind == GUISE_JOIN_RISE ? stay_served(v, proc)
							   : serve_place(v, proc, &in->with.sender);
	if (in->request.kind == GUISE_JOIN_RISE)
		note_risen(v, proc, in->with.sender.pid);
	enter_place(member, &in->with.sender);
	__atomic_store_n(&member->pid, in->with.sender.pid, __ATOMIC_RELEASE);
	if (v->known)
		v->known(v, proc);
	__atomic_store_n(&member->expected, 0, __ATOMIC_RELEASE);
	guise_futex_wake(&member->expected, 1);
	if (in->request.kind == GUISE_JOIN_GREET)
		return 0;
	r.proc = proc;
	r.base = v->s->region->base;
	r.fds = (uint32_t)gather(v, &r, fd);
	/* One that is gone again hangs up, too. */
	answer(v->control[proc], &r, fd);
	return 0;
}

bool guise_server_hear(struct guise_server *v, unsigned int proc)
{
	struct incoming in;

	if (receive(v->control[proc], &in) && (in.len || in.with.fds)) {
		if (arrived(v, proc, &in))
			v->refused++;
		guise_message_close(&in.with);
	}
	return !hung_up(v->control[proc]);
}

void guise_server_gone(struct guise_server *v, unsigned int proc)
{
	if (v->control[proc] < 0)
		return;
	guise_own_lock(GUISE_LOCK_ASK);
	host_sys(SYS_close, v->control[proc]);
	v->control[proc] = -1;
	guise_own_unlock(GUISE_LOCK_ASK);
	v->members--;
	guise_bury(v->s, proc);
}

void guise_server_end(struct guise_server *v)
{
	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		if (v->control[i] >= 0)
			host_sys(SYS_close, v->control[i]);
	host_sys(SYS_close, v->alive[0]);
	host_sys(SYS_close, v->alive[1]);
	if (v->ticket >= 0)
		host_sys(SYS_close, v->ticket);
}
