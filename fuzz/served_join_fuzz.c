// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the messages that a served program sends its servant (lib/region/join.h): the
 * servant of the holder (holder/servant/servant.c) with the kernel that is shipped, and a program
 * that sends it anything.
 *
 *	served_join_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn sends one message, from a proper one to noise, with descriptors of all kinds; marks that
 * a message speaks of may be anything, too. A proper message gets one answer, of the kind that was
 * asked for, or a refusal; another one gets none. A place that was given is entered, or is let go.
 * After some turns: the servant lives, and has no more descriptors than before; the places that
 * were let go are free again; the kernel has not warned; and an honest program makes a connection.
 */
#include "turns.h"

#include "inside.h"
#include "served.h"

#include "holder/servant/servant.h"
#include "host/fd.h"
#include "host/message.h"
#include "region/join.h"
#include "region/vcpu.h"
#include "served/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH_MOST    128 /* of a message; the longest proper one has 32 bytes */
#define FDS_MOST       4
#define EXAMINED_TURNS 40
#define ANSWER_MS      20000
#define FREE_NS        20000000000ull

static struct guise_stack *stack, *honest, *program;
static pid_t servant_pid, honest_pid;
static int descriptors;
static uint64_t n_messages, n_proper, n_refused, n_places, n_entered, n_examined;

/* How many descriptors a process has. */
static int descriptors_of(pid_t pid)
{
	char path[64];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	turns_need(dir, "the servant's descriptors are not listed");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void begin(void)
{
	stack = served_begin();
	honest = served_join();
	honest_pid = served_newest();
	program = served_join();
	servant_pid = served_newest();
	descriptors = descriptors_of(servant_pid);
}

/* An answer, and the descriptor that came with it: 1 for none. */
static int hear(int channel, struct guise_join_reply *reply, int *fd, int wait)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };
	struct guise_message m;
	long len;

	*fd = -1;
	if (poll(&p, 1, wait) <= 0)
		return 1;
	len = guise_message_receive(channel, reply, sizeof(*reply), &m);
	if (len <= 0)
		turns_fail("the servant has ended", len);
	if (guise_join_check_reply(reply, (size_t)len, (int)m.fds))
		turns_found("an answer is not one: %s", guise_error());
	if (reply->served == GUISE_JOIN_PLACE && m.fds)
		*fd = m.fd[0];
	else
		guise_message_close(&m);
	return reply->status;
}

static int make_descriptor(struct rng *r)
{
	int pair[2];

	switch (rng_below(r, 4)) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return dup(program->bell[0]);
	case 2:
		turns_need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "no pair");
		close(pair[1]);
		return pair[0];
	default: /* what a program has for a place: its ticket */
		return dup(served_ticket());
	}
}

/* As is_good() in holder/servant/servant.c. */
static bool is_proper(const struct guise_join_place *m, size_t len, unsigned int fds)
{
	const struct guise_join_request *q = &m->request;

	if (len < sizeof(*q) || q->magic != GUISE_JOIN_MAGIC || q->abi != GUISE_ABI)
		return false;
	if (q->kind == GUISE_JOIN_ENTER || q->kind == GUISE_JOIN_IDENTIFY)
		return len == sizeof(*q) && !fds;
	if (q->kind == GUISE_JOIN_MAP || q->kind == GUISE_JOIN_UNMAP)
		return len == sizeof(*m) && !fds;
	return fds == 1 && len == sizeof(*m) &&
	       (q->kind == GUISE_JOIN_GIVE || q->kind == GUISE_JOIN_TAKE ||
		(q->kind == GUISE_JOIN_HEIR && m->marks && m->marks <= GUISE_RING_MARKS &&
		 m->of <= GUISE_PLACE_SELF && m->lane < GUISE_LANES));
}

static void any_marks(struct rng *r, unsigned int lane)
{
	struct guise_mark *mark = (void *)guise_ring_room(program->served->ring, lane);

	for (unsigned int i = 0; i < 16; i++) {
		uint64_t any[4] = { rng_next(r), rng_next(r), rng_next(r), rng_next(r) };

		if (rng_one_in(r, 2))
			any[0] = any[1] = rng_below(r, 8);
		memcpy(&mark[i], any, sizeof(*mark) < sizeof(any) ? sizeof(*mark) : sizeof(any));
	}
}

/* What is done with a place. */
static void use_place(struct rng *r, int end)
{
	struct guise_join_request q = guise_join_request(GUISE_JOIN_ENTER);
	struct guise_join_reply reply;
	int fd;

	n_places++;
	if (rng_one_in(r, 2)) {
		turns_need(send(end, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q), "no message");
		if (hear(end, &reply, &fd, ANSWER_MS) || reply.served != GUISE_JOIN_RING)
			turns_fail("who comes to a place gets no ring", reply.status);
		n_entered++;
	} else if (rng_one_in(r, 2)) {
		q.kind = (uint32_t)rng_next(r);
		send(end, &q, rng_below(r, sizeof(q)) + 1, MSG_NOSIGNAL);
	}
	close(end);
}

static void message(struct rng *r)
{
	static const enum guise_join_kind kinds[] = { GUISE_JOIN_ENTER, GUISE_JOIN_HEIR,
						      GUISE_JOIN_HEIR,  GUISE_JOIN_GIVE,
						      GUISE_JOIN_TAKE,  GUISE_JOIN_IDENTIFY };
	struct guise_join_place m = { .request = guise_join_request(rng_pick(r, kinds)) };
	unsigned int fds = m.request.kind != GUISE_JOIN_ENTER &&
			   m.request.kind != GUISE_JOIN_IDENTIFY;
	size_t len = fds ? sizeof(m) : sizeof(m.request);
	struct guise_join_reply reply;
	uint8_t bytes[LENGTH_MOST];
	int fd[FDS_MOST], end, status;
	bool proper;

	m.keep = (int32_t)(rng_one_in(r, 8) ? rng_next(r) : rng_below(r, 8)) - 1;
	m.lane = rng_one_in(r, 8) ? (uint32_t)rng_next(r) : rng_below(r, 4);
	m.marks = rng_one_in(r, 8) ? (uint32_t)rng_next(r) : rng_below(r, 16);
	m.of = rng_one_in(r, 8) ? (uint32_t)rng_next(r) : rng_below(r, 3);
	any_marks(r, m.lane % GUISE_LANES);
	if (rng_one_in(r, 6))
		len = 1 + rng_below(r, LENGTH_MOST - 1);
	if (rng_one_in(r, 6))
		fds = rng_below(r, FDS_MOST + 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_next(r);
	memcpy(bytes, &m, sizeof(m));
	if (rng_one_in(r, 6))
		bytes[rng_below(r, sizeof(m))] ^= (uint8_t)(1u << rng_below(r, 8));
	memcpy(&m, bytes, sizeof(m));
	for (unsigned int i = 0; i < fds; i++)
		fd[i] = make_descriptor(r);
	proper = is_proper(&m, len, fds);
	if (guise_message_send(program->control, bytes, len, fd, fds))
		turns_fail("the servant takes no message", 0);
	guise_fd_close_all(fd, fds);
	n_messages++;
	n_proper += proper;
	if (!proper)
		return;
	status = hear(program->control, &reply, &end, ANSWER_MS);
	if (status > 0)
		turns_fail("a proper message is not answered", m.request.kind);
	if (status < 0) {
		n_refused++;
		return;
	}
	if (reply.served != (m.request.kind == GUISE_JOIN_ENTER  ? GUISE_JOIN_RING
			     : m.request.kind == GUISE_JOIN_HEIR ? GUISE_JOIN_PLACE
								 : GUISE_JOIN_DONE))
		turns_fail("an answer to something else", reply.served);
	if (end >= 0)
		use_place(r, end);
}

static void examine(void)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	const uint64_t until = guise_host_now() + FREE_NS;
	struct guise_join_reply reply;
	const char *wrong;
	int fd;

	if (hear(program->control, &reply, &fd, 0) <= 0)
		turns_fail("an answer that nobody asked for", reply.served);
	/* Holder, honest and hostile servant. */
	while (served_members() != 2 || descriptors_of(servant_pid) != descriptors) {
		if (guise_host_now() > until)
			turns_found("%u programs are on the stack, and the servant has %d "
				    "descriptors; it had %d",
				    served_members(), descriptors_of(servant_pid), descriptors);
		nanosleep(&moment, NULL);
	}
	served_examine();
	wrong = inside_loopback(honest);
	if (wrong)
		turns_found("for an honest program %s", wrong);
	n_examined++;
}

static void turn(struct rng *r, uint64_t number)
{
	message(r);
	if (number % EXAMINED_TURNS == EXAMINED_TURNS - 1)
		examine();
}

static void end(struct rng *r)
{
	(void)r;
	served_leave(program, servant_pid);
	served_leave(honest, honest_pid);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "served_join",
		.where = "what a served program sends",
		.begin = begin,
		.turn = turn,
		.end = end,
		.sums = { { "messages", &n_messages },
			  { "proper", &n_proper },
			  { "refused", &n_refused },
			  { "places", &n_places },
			  { "entered", &n_entered },
			  { "examined", &n_examined } },
	};

	if (servant_wanted(argc, argv))
		return servant(argc, argv);
	return turns_main(&fuzzer, argc, argv);
}
