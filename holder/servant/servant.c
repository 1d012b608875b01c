// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-holder --servant CHANNEL END PID
 *
 * A servant is a member of the stack that makes the calls of one process which is not
 * (served/ring.h). CHANNEL leads to that process, which has asked to join and waits for an answer;
 * END is that of the servant's own place; PID is the program's process.
 *
 * One thread reads the channel, the others serve the ring. On the channel a program that forks or
 * executes another one asks for a place for what comes. Then the servant prepares a place
 * as any member does (region/heir.h) and forks; its child serves that process, with copies of the
 * sockets, over a channel of its own. When the channel hangs up the program is gone, and its
 * servant ends, as any member does.
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
#include "region/heir.h"
#include "region/join.h"
#include "served/servant.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT_MAX (1u << 20) /* what one program can add to a summary */
#define MARKS_MAX (GUISE_LANE_ROOM / sizeof(struct guise_mark))

static void refuse(int channel)
{
	struct guise_join_reply r = { .magic = GUISE_JOIN_MAGIC,
				      .abi = GUISE_ABI,
				      .status = -EAGAIN };

	snprintf(r.error, sizeof(r.error), "%s", guise_error());
	guise_message_send(channel, &r, sizeof(r), NULL, 0);
}

/* marks: how many lie in the ring for the program. */
static void give_ring(int channel, const struct guise_servant *v, unsigned int marks)
{
	const struct guise_join_reply r = { .magic = GUISE_JOIN_MAGIC,
					    .abi = GUISE_ABI,
					    .served = GUISE_JOIN_RING,
					    .fds = 1 + GUISE_LANE_BELLS,
					    .marks = marks };
	int fd[1 + GUISE_LANE_BELLS] = { v->fd };

	memcpy(fd + 1, v->bell, sizeof(v->bell));
	guise_message_send(channel, &r, sizeof(r), fd, r.fds);
}

static void give_place(int channel, int end)
{
	const struct guise_join_reply r = {
		.magic = GUISE_JOIN_MAGIC, .abi = GUISE_ABI, .served = GUISE_JOIN_PLACE, .fds = 1
	};

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
		err = guise_heir_prepare(s, ticket, &of, marks, place->marks, place->keep);
	if (err && marks)
		guise_call(s, GUISE_NR_FREE, (long)marks, (long)(place->marks * sizeof(*marks)), 0,
			   0, 0, 0);
	if (!err)
		pid = fork();
	if (!pid) {
		close(ticket);
		close(channel);
		close(pair[1]);
		guise_servant_free(v);
		guise_heir_become(s, &of);
		_exit(serve(s, pair[0], marks, place->fork ? 0 : place->marks, false));
	}
	if (!err && pid < 0)
		err = guise_fail(errno, "no process: %s", strerror(errno));
	guise_heir_drop(&of);
	if (err)
		refuse(channel);
	else
		give_place(channel, pair[1]);
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
	struct guise_join_reply r = { .magic = GUISE_JOIN_MAGIC,
				      .abi = GUISE_ABI,
				      .served = GUISE_JOIN_DONE,
				      .result = -EBADF };
	struct stat st;

	if (!fstat(placeholder, &st) && S_ISSOCK(st.st_mode))
		r.result = m->request.kind == GUISE_JOIN_GIVE
				   ? (int)guise_call(v->stack, GUISE_NR_GIVE, m->keep,
						     (uint32_t)st.st_ino, 0, 0, 0, 0)
				   : (int)guise_call(v->stack, GUISE_NR_TAKE, (uint32_t)st.st_ino,
						     m->keep, 0, 0, 0, 0);
	guise_message_send(channel, &r, sizeof(r), NULL, 0);
}

/* Whether the message is one that a program sends; what it names is there then. */
static bool is_good(const struct guise_join_place *m, long len, unsigned int fds)
{
	const struct guise_join_request *q = &m->request;

	if (len < (long)sizeof(*q) || q->magic != GUISE_JOIN_MAGIC || q->abi != GUISE_ABI)
		return false;
	if (q->kind == GUISE_JOIN_ENTER)
		return len == (long)sizeof(*q) && !fds;
	if (fds != 1 || len != (long)sizeof(*m))
		return false;
	if (q->kind == GUISE_JOIN_GIVE || q->kind == GUISE_JOIN_TAKE)
		return true;
	return q->kind == GUISE_JOIN_HEIR && m->marks && m->marks <= MARKS_MAX &&
	       m->lane < GUISE_LANES;
}

/* marks: for a program that comes. False: it is gone. */
static bool hear(struct guise_servant *v, int channel, unsigned int marks)
{
	struct guise_join_place m;
	struct guise_message with;
	struct pollfd p = { .fd = channel, .events = POLLIN };
	long len;

	if (poll(&p, 1, -1) < 0)
		return errno == EINTR;
	len = guise_message_receive(channel, &m, sizeof(m), &with);
	if (len > 0 && is_good(&m, len, with.fds)) {
		if (m.request.kind == GUISE_JOIN_ENTER)
			give_ring(channel, v, marks);
		else if (m.request.kind == GUISE_JOIN_HEIR)
			heir(v, channel, &m, with.fd[0]);
		else
			pass(v, channel, &m, with.fd[0]);
	}
	guise_message_close(&with);
	return len > 0 || len == -EAGAIN || len == -EINTR;
}

static void *run(void *v)
{
	guise_servant_run(v);
	return NULL;
}

/* marks: n of them, for the program that comes. asked: it waits for its answer already. Returns
 * when it could not be served: the exit status. */
static int serve(struct guise_stack *s, int channel, const struct guise_mark *marks, unsigned int n,
		 bool asked)
{
	struct guise_servant *v = guise_servant_make(s);
	pthread_t thread;

	if (v)
		memcpy(guise_ring_room(v->ring, 0), marks, n * sizeof(*marks));
	if (!v || pthread_create(&thread, NULL, run, v)) {
		refuse(channel);
		return 1;
	}
	if (asked)
		give_ring(channel, v, n);
	while (hear(v, channel, n))
		;
	for (unsigned int i = 0; i < GUISE_COUNTS; i++)
		guise_count(s, i, v->ring->count[i] < COUNT_MAX ? v->ring->count[i] : COUNT_MAX);
	/* Calls that wait are not awaited: the port ends them, as those of any process. */
	guise_leave_quietly();
	_exit(0);
}

/* What the holder has open is not for the process that serves. */
static void close_others(int one, int other)
{
	int low = one < other ? one : other, high = one < other ? other : one;

	close_range(3, (unsigned int)low - 1, 0);
	close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
}

bool servant_wanted(int argc, char **argv)
{
	return argc == 5 && !strcmp(argv[1], "--servant");
}

int servant(int argc, char **argv)
{
	int channel = atoi(argv[2]), end = atoi(argv[3]), err = 0;
	struct guise_stack *s;

	(void)argc;
	close_others(channel, end);
	/* Whoever started it does not wait for it. */
	if (fork())
		_exit(0);
	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* no zombies of servants of children */
	channel = guise_fd_high(channel);
	s = guise_join_enter(end, &err);
	if (!s) {
		refuse(channel);
		return 1;
	}
	return serve(s, channel, NULL, 0, true);
}
