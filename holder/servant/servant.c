// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-holder --servant CHANNEL END PID USER
 *
 * A servant is a member of the stack that makes the calls of one process which is not
 * (served/ring.h). CHANNEL leads to that process, which has asked to join and waits for an answer;
 * END is that of the servant's own place; PID is the program's process; USER is the stack's user,
 * whose rights it takes (isolation.c), and groups, as numbers.
 *
 * One thread reads the channel, the others serve the ring. On the channel a program that forks or
 * executes another one asks for a place for what comes. Then the servant prepares a place
 * as any member does (region/heir.h) and forks; its child serves that process, with copies of the
 * sockets, over a channel of its own. When the channel hangs up the program is gone, and its
 * servant ends, as any member does. A child that guise has not seen begin may have a copy of the
 * channel. So the process is watched as well, where the host's kernel has pidfds.
 *
 * What comes over the channel is another process's, with other rights: messages are checked for
 * length and kind. Marks are copied to memory of the stack as they are. They are read by the
 * port, which checks each descriptor in them, and by the program they came from.
 */
#include "holder/servant/servant.h"

#include "guise/syscall.h"
#include "host/fd.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/ask.h"
#include "region/heir.h"
#include "region/identity.h"
#include "region/join.h"
#include "served/mirror.h"
#include "served/servant.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static int program = -1; /* the program's process, once it has come; -1: not known */

static void watch_program(pid_t pid)
{
	if (program >= 0)
		close(program);
	program = (int)host_sys(SYS_pidfd_open, pid, 0);
}

/* The kernel is to name the sender of each message. */
static void name_senders(int channel)
{
	const int on = 1;

	setsockopt(channel, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

/* marks: how many lie in the ring for the program. */
static void give_ring(int channel, const struct guise_servant *v, unsigned int marks)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_RING);
	int fd[1 + GUISE_LANE_BELLS] = { v->fd };

	r.fds = 1 + GUISE_LANE_BELLS;
	r.marks = marks;
	memcpy(fd + 1, v->bell, sizeof(v->bell));
	guise_message_send(channel, &r, sizeof(r), fd, r.fds);
}

static void give_place(int channel, int end)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_PLACE);

	r.fds = 1;
	guise_message_send(channel, &r, sizeof(r), &end, 1);
}

/* Takes them out of the ring, into memory of the stack; NULL: no room. */
static struct guise_mark *take_marks(const struct guise_servant *v,
				     const struct guise_join_place *place)
{
	const size_t bytes = place->marks * sizeof(struct guise_mark);
	long at = guise_call(v->stack, GUISE_NR_ALLOC, (long)bytes, 0, 0, 0, 0, 0);

	if (at < 0 && at > -4096)
		return NULL;
	memcpy((void *)at, guise_ring_room(v->ring, place->lane), bytes);
	return (struct guise_mark *)at;
}

static int serve(struct guise_stack *s, int channel, const struct guise_mark *marks, unsigned int n,
		 bool asked);

/* A place for a process to come. Returns in the servant; its child lives in here, and ends. */
static void heir(struct guise_servant *v, int channel, const struct guise_join_place *place,
		 int ticket)
{
	struct guise_stack *s = v->stack;
	struct guise_heir of = { .end = -1 };
	struct guise_mark *marks = NULL;
	int pair[2] = { -1, -1 }, err = 0;
	pid_t pid = -1;

	marks = take_marks(v, place);
	if (!marks)
		err = guise_fail(ENOMEM, "the stack is full");
	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		err = guise_fail(errno, "no socket pair: %s", strerror(errno));
	if (!err)
		name_senders(pair[0]);
	if (!err)
		err = guise_heir_prepare(s, ticket, &of, marks, place->marks, place->keep);
	if (err && marks)
		guise_call(s, GUISE_NR_FREE, (long)marks, (long)(place->marks * sizeof(*marks)), 0,
			   0, 0, 0);
	if (!err && place->of == GUISE_PLACE_SELF) {
		give_place(channel, of.end); /* the holder judges it there */
		goto out;
	}
	if (!err)
		pid = fork();
	if (!pid) {
		close(ticket);
		close(channel);
		close(pair[1]);
		close(program);
		program = -1;
		guise_servant_free(v);
		guise_mirrors_forget();
		guise_heir_become(s, &of);
		_exit(serve(s, pair[0], marks, place->of == GUISE_PLACE_FORK ? 0 : place->marks,
			    false));
	}
	if (!err && pid < 0)
		err = guise_fail(errno, "no process: %s", strerror(errno));
	if (err)
		guise_server_refuse(channel, -EAGAIN);
	else
		give_place(channel, pair[1]);
out:
	guise_heir_drop(&of);
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/*
 * A socket on its way between processes is found by its placeholder's inode. The program shows the
 * placeholder itself: otherwise it could take what others send each other.
 */
static void pass(const struct guise_servant *v, int channel, const struct guise_join_place *m,
		 int placeholder)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DONE);
	struct stat st;

	r.result = -EBADF;
	if (!fstat(placeholder, &st) && S_ISSOCK(st.st_mode))
		r.result = m->request.kind == GUISE_JOIN_GIVE
				   ? (int)guise_call(v->stack, GUISE_NR_GIVE, m->keep,
						     (uint32_t)st.st_ino, 0, 0, 0, 0)
				   : (int)guise_call(v->stack, GUISE_NR_TAKE, (uint32_t)st.st_ino,
						     m->keep, 0, 0, 0, 0);
	guise_message_send(channel, &r, sizeof(r), NULL, 0);
}

/* Whose the program is now, the holder says: 1 if it has the rights of the stack's user. */
static int look_at(const struct guise_servant *v, pid_t pid)
{
	int ret = pid ? guise_ask(v->stack, GUISE_ASK_IDENTITY, pid) : -ESRCH;

	if (ret >= 0)
		guise_identity_changed(v->stack, true);
	return ret;
}

static void identify(const struct guise_servant *v, int channel, const struct ucred *who)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DONE);

	r.result = look_at(v, who->pid);
	guise_message_send(channel, &r, sizeof(r), NULL, 0);
}

/* A ring that the program maps, or has unmapped. */
static void map(const struct guise_servant *v, int channel, const struct guise_join_place *m)
{
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_DONE);
	int fd = -1;

	if (m->request.kind == GUISE_JOIN_UNMAP) {
		guise_mirror_free(v->stack, m->keep);
	} else {
		r.result = guise_mirror_make(v->stack, m->keep, &fd);
		if (r.result >= 0) {
			r.served = GUISE_JOIN_MEMORY;
			r.fds = 1;
		} else {
			r.status = r.result;
			snprintf(r.error, sizeof(r.error), "no memory for a ring of packets: %s",
				 strerror(-r.result));
		}
	}
	guise_message_send(channel, &r, sizeof(r), &fd, r.fds);
	if (fd >= 0)
		close(fd);
}

/* Whether the message is one that a program sends; what it names is there then. */
static bool is_good(const struct guise_join_place *m, long len, unsigned int fds)
{
	const struct guise_join_request *q = &m->request;

	if (len < (long)sizeof(*q) || q->magic != GUISE_JOIN_MAGIC || q->abi != GUISE_ABI)
		return false;
	if (q->kind == GUISE_JOIN_ENTER || q->kind == GUISE_JOIN_IDENTIFY)
		return len == (long)sizeof(*q) && !fds;
	if (len != (long)sizeof(*m))
		return false;
	if (q->kind == GUISE_JOIN_MAP || q->kind == GUISE_JOIN_UNMAP)
		return !fds;
	if (fds != 1)
		return false;
	if (q->kind == GUISE_JOIN_GIVE || q->kind == GUISE_JOIN_TAKE)
		return true;
	return q->kind == GUISE_JOIN_HEIR && m->marks && m->marks <= GUISE_RING_MARKS &&
	       m->lane < GUISE_LANES && m->of <= GUISE_PLACE_SELF;
}

/* marks: for a program that comes. False: it is gone. */
static bool hear(struct guise_servant *v, int channel, unsigned int marks)
{
	struct guise_join_place m;
	struct guise_message with;
	struct pollfd p[2] = { { .fd = channel, .events = POLLIN },
			       { .fd = program, .events = POLLIN } };
	long len;

	if (poll(p, 2, -1) < 0)
		return errno == EINTR;
	if (p[1].revents)
		return false;
	len = guise_message_receive(channel, &m, sizeof(m), &with);
	if (len > 0 && is_good(&m, len, with.fds)) {
		if (m.request.kind == GUISE_JOIN_ENTER) {
			v->stack->region->procs[v->stack->proc].serves =
				with.sender.pid ? with.sender.pid : GUISE_SERVES_NOBODY;
			watch_program(with.sender.pid);
			look_at(v, with.sender.pid);
			give_ring(channel, v, marks);
		} else if (m.request.kind == GUISE_JOIN_IDENTIFY) {
			identify(v, channel, &with.sender);
		} else if (m.request.kind == GUISE_JOIN_HEIR) {
			heir(v, channel, &m, with.fd[0]);
		} else if (!with.fds) {
			map(v, channel, &m);
		} else {
			pass(v, channel, &m, with.fd[0]);
		}
	}
	guise_message_close(&with);
	return len > 0 || len == -EAGAIN || len == -EINTR;
}

static void *run(void *v)
{
	guise_servant_run(v);
}

/* marks: n of them, for the program that comes. asked: it waits for its answer already. Returns
 * when it could not be served: the exit status. */
static int serve(struct guise_stack *s, int channel, const struct guise_mark *marks, unsigned int n,
		 bool asked)
{
	struct guise_servant *v = guise_servant_make(s);
	pthread_t thread;

	if (v && n)
		memcpy(guise_ring_room(v->ring, 0), marks, n * sizeof(*marks));
	if (!v || pthread_create(&thread, NULL, run, v)) {
		guise_server_refuse(channel, -EAGAIN);
		return 1;
	}
	guise_servant_lives(v);
	if (asked)
		give_ring(channel, v, n);
	while (hear(v, channel, n))
		;
	guise_servant_count(v);
	/* Calls that wait are not awaited: the port ends them, as those of any process. */
	guise_leave_quietly();
	_exit(0);
}

bool servant_wanted(int argc, char **argv)
{
	return argc == 6 && !strcmp(argv[1], "--servant");
}

int servant(int argc, char **argv)
{
	int channel = atoi(argv[2]), end = atoi(argv[3]), err = 0;
	static const int ignored[] = { SIGCHLD, SIGPIPE, SIGIO, SIGXCPU, SIGXFSZ };
	const struct guise_proc *place;
	struct isolation_user user;
	struct guise_stack *s;
	unsigned int left;

	(void)argc;
	if (!isolation_read(&user, argv[5]))
		return 2;
	/* Whoever started it does not wait for it. */
	if (fork())
		_exit(0);
	setsid();
	prctl(PR_SET_NAME, "guise-servant", 0, 0, 0); /* a holder is looked for by its name */
	/* No zombies of servants of children; and what the program does may have these sent. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	channel = guise_fd_high(channel);
	watch_program(atoi(argv[4]));
	if (isolation_begin(&user, &left)) {
		guise_server_refuse(channel, -EPERM);
		return 1;
	}
	s = guise_join_enter(end, GUISE_JOIN_ENTER, &err);
	if (!s) {
		guise_server_refuse(channel, -EAGAIN);
		return 1;
	}
	name_senders(channel);
	s->serves = true;
	place = guise_own_place(s);
	isolation_seal(true, &left);
	return serve(s, channel, (void *)(uintptr_t)place->marks,
		     place->marks_n < GUISE_RING_MARKS ? place->marks_n
						       : (unsigned int)GUISE_RING_MARKS,
		     true);
}
