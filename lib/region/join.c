// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joining the stack of a holder; join.h describes the exchange, also for a process whose
 * place was prepared. A process has joined when the region is mapped and its links are
 * attached; its first call then makes its first task. If anything fails before, nothing
 * is left behind: the holder sees the channel hang up and takes the process for dead.
 */
#include "region/join.h"
#include "host/signal.h"
#include "host/fd.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/additions.h"
#include "region/ask.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/vcpu.h"
#include "served/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A holder answers in microseconds; one that is stopped must not hang us. */
#define ANSWER_NS 10000000000ULL
/* ... nor for long, where nothing depends on its answer. */
#define TOLD_NS 200000000ULL

static int find_ticket(int ticket)
{
	const char *text = secure_getenv("GUISE_STACK");
	char *end;
	long n;

	if (ticket >= 0)
		return ticket;
	if (!text)
		return guise_fail(ENOENT,
				  "join: GUISE_STACK is not set: this program was not started "
				  "by guise run or guise exec");
	n = strtol(text, &end, 10);
	if (end == text || *end || n < 0 || n > INT32_MAX)
		return guise_fail(EINVAL, "join: GUISE_STACK=%s is not the number of a descriptor",
				  text);
	return (int)n;
}

/* Waits until fd is ready for events; 0 or -errno. */
static int await(int fd, short events, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	struct timespec t;
	uint64_t now;
	long ret;

	do {
		now = guise_host_now();
		if (now >= deadline)
			return -ETIMEDOUT;
		t.tv_sec = (time_t)((deadline - now) / 1000000000);
		t.tv_nsec = (long)((deadline - now) % 1000000000);
		ret = host_sys(SYS_ppoll, &p, 1, &t, NULL, 0);
	} while (!ret || ret == -EINTR);
	return ret < 0 ? (int)ret : 0;
}

/* fd: -1, or a descriptor to send along. */
static int send_on(int to, const void *data, size_t len, int fd, uint64_t deadline)
{
	int ret;

	for (;;) {
		ret = guise_message_send(to, data, len, &fd, fd >= 0);
		if (!ret)
			return 0;
		if (ret == -EAGAIN) /* others join, too, and the holder is behind */
			ret = await(to, POLLOUT, deadline);
		if (ret < 0 && ret != -EINTR)
			return ret;
	}
}

static int send_request(int to, enum guise_join_kind kind, int channel, uint64_t deadline)
{
	const struct guise_join_request q = guise_join_request(kind);

	return send_on(to, &q, sizeof(q), channel, deadline);
}

/* The answer's length. */
static long receive_reply(int channel, struct guise_join_reply *r, struct guise_message *m,
			  uint64_t deadline)
{
	long ret = await(channel, POLLIN, deadline);

	if (ret < 0)
		return ret;
	ret = guise_message_receive(channel, r, sizeof(*r), m);
	return ret ? ret : -ECONNRESET;
}

int guise_join_send(int to, const void *data, size_t len, int fd)
{
	return send_on(to, data, len, fd, guise_host_now() + ANSWER_NS);
}

static bool is_hung_up(int fd)
{
	struct pollfd p = { .fd = fd };
	struct timespec now = { 0 };

	return host_sys(SYS_ppoll, &p, 1, &now, NULL, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* Judges the answer to a request over the descriptor `asked`: ret is the answer's length, or
 * -errno. 0; or -errno with the sentence, and the descriptors that came are closed. */
static int judge(long ret, int asked, const struct guise_join_reply *r,
		 const struct guise_message *m)
{
	if (ret >= 0)
		ret = guise_join_check_reply(r, (size_t)ret, (int)m->fds);
	else if (ret == -EBADF || ret == -ENOTSOCK || ret == -EOPNOTSUPP)
		guise_fail((int)-ret,
			   "join: descriptor %d is not a ticket; was it closed or "
			   "replaced by the program that started this one?",
			   asked);
	else if ((ret == -EPIPE || ret == -ECONNRESET) && !is_hung_up(asked))
		/* The holder did not get the channel that it was to answer on. */
		ret = guise_fail(EAGAIN,
				 "join: the stack's holder cannot take another process: it has as "
				 "many descriptors as its host lets it have (ulimit -Hn)");
	else if (ret == -EPIPE || ret == -ECONNRESET || ret == -ENOTCONN || ret == -ECONNREFUSED)
		ret = guise_fail(ENETDOWN, "join: the stack's holder is gone");
	else
		guise_fail((int)-ret, "join: the stack's holder does not answer: %s",
			   strerrordesc_np((int)-ret));
	if (!ret && r->status)
		ret = guise_fail(-r->status, "%s", r->error);
	if (ret)
		guise_message_close(m);
	return (int)ret;
}

int guise_join_receive(int channel, struct guise_join_reply *r, struct guise_message *m)
{
	long ret;

	m->fds = 0;
	ret = receive_reply(channel, r, m, guise_host_now() + ANSWER_NS);
	return judge(ret, channel, r, m);
}

int guise_join_arrive(int end, enum guise_join_kind kind, struct guise_join_reply *r,
		      struct guise_message *m)
{
	int ret = send_request(end, kind, -1, guise_host_now() + ANSWER_NS);

	m->fds = 0;
	return ret ? judge(ret, end, r, m) : guise_join_receive(end, r, m);
}

int guise_join_ask(int ticket, enum guise_join_kind kind, struct guise_join_reply *r,
		   struct guise_message *m)
{
	uint64_t deadline = guise_host_now() + ANSWER_NS;
	int pair[2];
	long ret;

	m->fds = 0;
	ret = host_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	if (ret < 0)
		return guise_fail((int)-ret, "join: no socket pair: %s",
				  strerrordesc_np((int)-ret));
	ret = send_request(ticket, kind, pair[1], deadline);
	/* Before the answer is awaited: or a holder that dies would not be seen. */
	host_sys(SYS_close, pair[1]);
	if (!ret)
		ret = receive_reply(pair[0], r, m, deadline);
	ret = judge(ret, ticket, r, m);
	if (!ret)
		return guise_fd_high(pair[0]);
	host_sys(SYS_close, pair[0]);
	return (int)ret;
}

void guise_join_tell(int ticket, const struct guise_join_outside *q)
{
	uint64_t deadline = guise_host_now() + TOLD_NS;
	int pair[2], ret;

	if (host_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	ret = send_on(ticket, q, sizeof(*q), pair[1], deadline);
	host_sys(SYS_close, pair[1]);
	if (!ret)
		await(pair[0], POLLIN, deadline);
	host_sys(SYS_close, pair[0]);
}

int guise_join_greet(int end)
{
	return send_request(end, GUISE_JOIN_GREET, -1, guise_host_now() + ANSWER_NS);
}

static int attach_links(struct guise_stack *s)
{
	int err = 0;

	/* Links have come or gone since: the process gets the others when it next goes to sleep. */
	if (guise_links_stale(s)) {
		for (int i = 0; i < GUISE_MAX_LINKS; i++)
			for (int k = 0; k < GUISE_LINK_FDS; k++) {
				if (s->port[i].fd[k] >= 0)
					host_sys(SYS_close, s->port[i].fd[k]);
				s->port[i].fd[k] = -1;
			}
		return 0;
	}
	for (int i = 0; i < GUISE_MAX_LINKS && !err; i++) {
		struct guise_link *link = &s->region->links[i];
		const struct guise_link_kind *kind;

		if (s->port[i].fd[0] < 0)
			continue;
		kind = guise_link_kind(link->kind);
		if (!kind)
			return guise_fail(EPROTO,
					  "join: the stack has a link of kind \"%.16s\", which "
					  "this libguise does not know",
					  link->kind);
		err = kind->backend->attach(s, link, &s->port[i]);
		s->port[i].generation = link->generation;
		if (!err)
			s->port[i].backend = kind->backend;
	}
	/* While they were attached: then it is not known whose these descriptors are. */
	if (guise_links_stale(s))
		for (int i = 0; i < GUISE_MAX_LINKS; i++)
			s->port[i].generation = 0;
	return err;
}

/* Puts the descriptors of an answer into s. */
static void take_descriptors(struct guise_stack *s, const struct guise_join_reply *r, const int *fd)
{
	unsigned int n = 0;

	s->memfd = fd[n++];
	s->monitor_fd = fd[n++];
	s->image_fd = fd[n++];
	s->alive = fd[n++];
	for (unsigned int i = 0; i < r->bells; i++)
		s->bell[i] = fd[n++];
	s->bells = r->bells;
	s->links_seen = r->links_now;
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		for (int k = 0; k < r->links[i]; k++)
			s->port[i].fd[k] = fd[n++];
}

static int map(struct guise_stack *s, const struct guise_join_reply *r)
{
	int err = guise_region_map(s);

	if (!err)
		err = guise_region_protect(s);
	if (err)
		return err;
	if (s->region->base != r->base)
		return guise_fail(EPROTO, "join: the holder says %#lx, its region %#lx",
				  (unsigned long)r->base, (unsigned long)s->region->base);
	return attach_links(s);
}

/* The stack of an answer. Takes the descriptors; on failure they are closed. */
static struct guise_stack *build(int control, const struct guise_join_reply *r, int *fd, int *err)
{
	struct guise_stack *s = guise_stack_new();

	if (!s) {
		guise_fd_close_all(fd, r->fds);
		host_sys(SYS_close, control);
		*err = -ENOMEM;
		return NULL;
	}
	s->control = control;
	s->tracer = r->tracer;
	guise_fd_all_high(fd, r->fds);
	if (!r->fds) {
		*err = guise_fail(EPROTO, "join: an answer without descriptors");
	} else if (r->served) {
		s->route = GUISE_SERVED;
		*err = guise_served_join(s, r, fd);
	} else {
		s->proc = r->proc;
		take_descriptors(s, r, fd);
		*err = map(s, r);
		host_sys(SYS_close, s->monitor_fd);
		s->monitor_fd = -1;
	}
	if (*err) {
		guise_stack_free(s);
		return NULL;
	}
	guise_fault_handler(&guise_stacks_signals);
	guise_slots_begin();
	/* However this process was made, it has nothing of its parent's any more. */
	if (!guise_stacks())
		guise_slots_forked();
	if (!s->served) {
		guise_stacks_add(s);
		guise_allow_tracer(s);
	}
	return s;
}

struct guise_stack *guise_join_uncounted(int ticket, int *err)
{
	struct guise_message m;
	struct guise_join_reply r;
	int control, unused;
	struct guise_stack *s;
	struct rlimit limit;

	if (!err)
		err = &unused;
	*err = ticket = find_ticket(ticket);
	if (ticket < 0)
		return NULL;
	limit = guise_fd_raise();
	*err = control = guise_join_ask(ticket, GUISE_JOIN_NOW, &r, &m);
	s = control < 0 ? NULL : build(control, &r, m.fd, err);
	guise_fd_restore(limit);
	return s;
}

struct guise_stack *guise_join(int ticket, int *err)
{
	struct guise_stack *s = guise_join_uncounted(ticket, err);
	const char *preload = secure_getenv("GUISE_PRELOAD");

	if (!s)
		return NULL;
	guise_count(s, GUISE_COUNT_PROGRAMS, 1);
	if (preload && !strcmp(preload, "off"))
		guise_count(s, GUISE_COUNT_BY_ITSELF, 1);
	return s;
}

struct guise_stack *guise_join_enter(int end, enum guise_join_kind kind, int *err)
{
	struct guise_message m;
	struct guise_join_reply r;
	struct guise_stack *s = NULL;
	struct rlimit limit;

	limit = guise_fd_raise();
	end = guise_fd_high(end);
	*err = guise_join_arrive(end, kind, &r, &m);
	if (!*err)
		s = build(end, &r, m.fd, err);
	else
		host_sys(SYS_close, end);
	if (s && !s->served)
		s->entered = true;
	guise_fd_restore(limit);
	return s;
}
