// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the join protocol (lib/region/join.h): a holder without a
 * kernel, and joiners that send it anything.
 *
 *	join_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn sends one message over the ticket, from a proper request to noise,
 * with descriptors of all kinds and numbers, or lets a member speak on its
 * channel, where one that was only expected may arrive. Whatever came: a
 * request gets at most one answer, which is well-formed; the proper ones are
 * admitted and no other; and a refusal leaves no descriptor open, no place taken
 * and no member behind. At times those that join are to be served: then a servant is begun for
 * them, which is expected in their place, or fails to begin. A part of the turns judges a damaged
 * answer instead, as a joiner does.
 */
#include "turns.h"

#include "region/join.h"
#include "region/serve.h"
#include "test/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH_MOST  400 /* of a message; an answer has 304 */
#define FDS_MOST     5
#define MEMBERS_MOST 8 /* at a time */

static struct guise_server server;
static struct guise_stack holder;
static int ticket;
static uint64_t n_requests, n_admitted, n_refused, n_answers, n_spoken, n_arrived;
static int member[MEMBERS_MOST]; /* the joiners' ends, by the order of joining */
static int member_proc[MEMBERS_MOST];
static int members, baseline;
static bool servants_begin;
static int servant_end;

/* All descriptors of a run are low: the number of those open. */
static int open_descriptors(void)
{
	return test_open_descriptors(256);
}

static void make_holder(void)
{
	int pair[2];

	test_holder(&holder, pair); /* only forget() buries here */
	ticket = pair[0];
	if (guise_server_init(&server, &holder, pair[1]))
		turns_fail(guise_error(), 0);
}

/* Starts a servant: it answers the joiner, and is to report on `end`. */
static int serve(int channel, const struct ucred *who, int end)
{
	const struct guise_join_reply answer = guise_join_reply(GUISE_JOIN_DONE);

	if (who->pid != getpid())
		turns_fail("somebody else is to be served", who->pid);
	if (!servants_begin)
		return guise_fail(EAGAIN, "no servant");
	servant_end = fcntl(end, F_DUPFD_CLOEXEC, 0);
	return guise_message_send(channel, &answer, sizeof(answer), NULL, 0);
}

/* What the reaper in the kernel does with the dead. */
static void forget(int proc)
{
	if (!holder.region->procs[proc].used)
		turns_fail("a member had no place", proc);
	memset(&holder.region->procs[proc], 0, sizeof(holder.region->procs[proc]));
}

static void damage(struct rng *r, uint8_t *bytes, size_t len)
{
	uint32_t times = 1 + rng_below(r, 4);

	while (len && times--) {
		uint8_t *at = bytes + rng_below(r, (uint32_t)len);

		if (rng_one_in(r, 2))
			*at ^= (uint8_t)(1u << rng_below(r, 8));
		else
			*at = (uint8_t)rng_next(r);
	}
}

/* Whether a channel is one that keeps messages apart. */
static bool of_messages(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       type == SOCK_SEQPACKET;
}

/* A descriptor to send along: fd[0] is sent, fd[1] (or -1) hears the answer. */
static void make_descriptor(struct rng *r, int fd[2])
{
	fd[1] = -1;
	switch (rng_below(r, 4)) {
	case 0:
		fd[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	case 1:
		fd[0] = eventfd(0, EFD_CLOEXEC);
		break;
	case 2:
		turns_need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), "no pair");
		break;
	default:
		turns_need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), "no pair");
	}
	turns_need(fd[0] >= 0, "no descriptor");
}

static void send_message(const void *data, size_t len, int sent[][2], int fds)
{
	int fd[FDS_MOST];

	for (int i = 0; i < fds; i++)
		fd[i] = sent[i][0];
	test_send(ticket, data, len, fd, fds);
}

/* Reads an answer and closes what came with it: its status, or 1 for none. */
static int hear_answer(int channel)
{
	struct guise_join_reply *reply = malloc(sizeof(*reply));
	int fds, status = 1;
	long len;

	turns_need(reply, "no memory");
	len = test_hear(channel, reply, &fds);
	if (len > 0) {
		if (guise_join_check_reply(reply, (size_t)len, fds))
			turns_fail(guise_error(), len);
		status = reply->status;
		n_answers++;
	}
	free(reply);
	return status;
}

/* Nobody has the other end of its channel. */
static void bury(int proc)
{
	if (guise_server_hear(&server, (unsigned int)proc))
		turns_fail("a member that hung up is heard", proc);
	guise_server_gone(&server, (unsigned int)proc);
	forget(proc);
}

static void leave(struct rng *r)
{
	int i = (int)rng_below(r, (uint32_t)members), proc = member_proc[i];

	close(member[i]);
	bury(proc);
	members--;
	member[i] = member[members];
	member_proc[i] = member_proc[members];
}

static void speak(struct rng *r)
{
	int i = (int)rng_below(r, (uint32_t)members), fd[1][2];
	uint64_t refused = server.refused;
	uint8_t noise[64];
	struct iovec iov = { noise, 1 + rng_below(r, sizeof(noise)) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	for (size_t k = 0; k < sizeof(noise); k++)
		noise[k] = (uint8_t)rng_next(r);
	make_descriptor(r, fd[0]);
	if (sendmsg(member[i], &m, MSG_NOSIGNAL) < 0 ||
	    !guise_server_hear(&server, (unsigned int)member_proc[i]) ||
	    server.refused != refused + 1)
		turns_fail("what a member says is not counted, or ends it", i);
	close(fd[0][0]);
	if (fd[0][1] >= 0)
		close(fd[0][1]);
	n_spoken++;
}

/* A process comes to the place that was made for it, properly or not; once only. */
static void arrive(struct rng *r)
{
	int i = (int)rng_below(r, (uint32_t)members);
	struct guise_proc *proc = &holder.region->procs[member_proc[i]];
	struct guise_join_request q = { .magic = GUISE_JOIN_MAGIC,
					.abi = GUISE_ABI,
					.kind = rng_below(r, 6) };
	const bool asks = q.kind == GUISE_JOIN_ENTER || q.kind == GUISE_JOIN_RISE;
	bool good = !proc->pid && (q.kind == GUISE_JOIN_GREET || asks);
	uint64_t refused = server.refused;

	if (send(member[i], &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q) ||
	    !guise_server_hear(&server, (unsigned int)member_proc[i]))
		turns_fail("what a process says that comes ends it", i);
	if (server.refused != refused + !good || (good && proc->pid != getpid()))
		turns_fail("who comes is not who is expected", q.kind);
	if ((hear_answer(member[i]) == 0) != (good && asks))
		turns_fail("a process that comes is not answered as it asked", q.kind);
	n_arrived += good;
}

static void request(struct rng *r)
{
	struct guise_join_request proper = { .magic = GUISE_JOIN_MAGIC,
					     .abi = GUISE_ABI,
					     .pid = getpid(),
					     .kind = rng_one_in(r, 2) ? GUISE_JOIN_HEIR
								      : GUISE_JOIN_NOW };
	size_t len = sizeof(proper);
	struct guise_join_request as_sent;
	uint8_t *bytes;
	int sent[FDS_MOST][2], fds = 1, ret, status;
	bool good, served;

	if (rng_one_in(r, 4))
		fds = (int)rng_below(r, FDS_MOST + 1);
	if (rng_one_in(r, 4))
		len = rng_one_in(r, 4) ? rng_below(r, LENGTH_MOST)
				       : rng_below(r, 2 * sizeof(proper));
	bytes = calloc(1, len ? len : 1);
	turns_need(bytes, "no memory");
	memcpy(bytes, &proper, len < sizeof(proper) ? len : sizeof(proper));
	if (rng_one_in(r, 2))
		damage(r, bytes, len);
	for (int i = 0; i < fds; i++)
		make_descriptor(r, sent[i]);

	memset(&as_sent, 0, sizeof(as_sent));
	memcpy(&as_sent, bytes, len < sizeof(as_sent) ? len : sizeof(as_sent));
	/* The joiner's pid is not judged. */
	good = fds == 1 && len == sizeof(proper) &&
	       !memcmp(bytes, &proper, offsetof(struct guise_join_request, pid)) &&
	       as_sent.kind <= GUISE_JOIN_HEIR && of_messages(sent[0][1]);
	send_message(bytes, len, sent, fds);
	for (int i = 0; i < fds; i++)
		close(sent[i][0]);
	free(bytes);

	server.serve = rng_one_in(r, 3) ? serve : NULL;
	served = good && server.serve && as_sent.kind == GUISE_JOIN_NOW;
	server.serve_all = true;
	servants_begin = !rng_one_in(r, 4);
	ret = guise_server_request(&server);
	server.serve = NULL; /* who comes to a place is a member */
	n_requests++;
	if (ret >= 0 && !good)
		turns_fail("a request was admitted that must not be", ret);
	if (ret < 0 && good)
		turns_fail(guise_error(), ret);
	if (ret == -EPIPE || (ret == -EAGAIN && len))
		turns_fail("a request was taken for the end", ret);
	if (guise_server_request(&server) != -EAGAIN)
		turns_fail("a message was taken for two", (long)len);
	status = fds && sent[0][1] >= 0 ? hear_answer(sent[0][1]) : 1;
	if ((good && (!served || servants_begin)) != (status == 0))
		turns_fail("the answer is not what the holder says", status);
	n_admitted += ret >= 0;
	n_refused += ret < 0;
	for (int i = ret >= 0 && !served ? 1 : 0; i < fds; i++)
		if (sent[i][1] >= 0)
			close(sent[i][1]);
	if (ret < 0)
		return;
	if (served && !servants_begin) {
		bury(ret);
		return;
	}
	member[members] = served ? servant_end : sent[0][1];
	member_proc[members++] = ret;
	if (members == MEMBERS_MOST)
		leave(r);
}

/* A joiner's judgement: what passes has all of its parts. */
static void judge(struct rng *r)
{
	struct guise_join_reply *reply = calloc(1, sizeof(*reply));
	int fds = (int)rng_below(r, GUISE_MESSAGE_FDS + 2), sum = GUISE_JOIN_FIXED_FDS;
	bool good;

	turns_need(reply, "no memory");
	reply->magic = GUISE_JOIN_MAGIC;
	reply->abi = GUISE_ABI;
	reply->base = 0x7e9000000000;
	reply->bells = rng_one_in(r, 8) ? (uint32_t)rng_below(r, 2 * GUISE_BELLS)
					: GUISE_BELLS_FIRST + (uint32_t)rng_below(r, 8);
	sum += (int)reply->bells;
	for (int i = 0; i < GUISE_MAX_LINKS && sum < fds; i++) {
		reply->links[i] = (uint8_t)rng_below(r, GUISE_LINK_FDS + 1);
		sum += reply->links[i];
	}
	reply->fds = (uint32_t)(rng_one_in(r, 8) ? fds : sum);
	if (rng_one_in(r, 2))
		fds = (int)reply->fds;
	if (rng_one_in(r, 2))
		damage(r, (uint8_t *)reply, offsetof(struct guise_join_reply, error) + 8);
	good = !guise_join_check_reply(reply, sizeof(*reply), fds);
	sum = reply->fds ? GUISE_JOIN_FIXED_FDS + (int)reply->bells
			 : 0; /* a place for somebody to come has none */
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		if (good && !reply->status && reply->links[i] > GUISE_LINK_FDS)
			turns_fail("an answer passed with too many descriptors of a link", i);
		sum += reply->links[i];
	}
	if (good && !reply->status && reply->fds &&
	    (reply->bells > GUISE_BELLS || reply->bells < GUISE_BELLS_FIRST))
		turns_fail("an answer passed with too few or too many bells", (int)reply->bells);
	if (good && (reply->status > 0 || (!reply->status && (sum != fds || fds < 0))))
		turns_fail("an answer passed whose descriptors are not there", fds);
	if (good && !reply->status && (reply->proc >= GUISE_MAX_PROCS || reply->base % 4096))
		turns_fail("an answer passed with a place that is none", reply->proc);
	free(reply);
}

static void begin(void)
{
	make_holder();
	baseline = open_descriptors();
}

static void turn(struct rng *r, uint64_t number)
{
	uint32_t what = rng_below(r, 9);

	(void)number;
	if (what < 5)
		request(r);
	else if (what == 5 || !members)
		judge(r);
	else if (what == 6)
		speak(r);
	else if (what == 7)
		arrive(r);
	else
		leave(r);
	/* A member is two descriptors: the holder's end and the joiner's. */
	if (open_descriptors() != baseline + 2 * members)
		turns_fail("a descriptor is left open, or one too many is closed",
			   open_descriptors() - baseline - 2 * members);
	if ((int)server.members != members)
		turns_fail("the holder counts other members", server.members);
}

static void end(struct rng *r)
{
	while (members)
		leave(r);
	guise_server_end(&server);
	free(holder.slots);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "join",
		.where = "the join protocol",
		.begin = begin,
		.turn = turn,
		.end = end,
		.sums = { { "requests", &n_requests },
			  { "admitted", &n_admitted },
			  { "refused", &n_refused },
			  { "answers", &n_answers },
			  { "spoken", &n_spoken },
			  { "arrived", &n_arrived } },
	};

	return turns_main(&fuzzer, argc, argv);
}
