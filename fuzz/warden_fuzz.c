// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of what a carrier says to its warden (holder/warden/wire.h): a warden without a
 * carrier, to which anything is sent.
 *
 *	warden_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn sends one request, from a proper one to noise, of any length and with descriptors of any
 * number. Whatever came: there is one answer, of its one size; a request that brings what it must
 * not is refused; a process that is not the stack's user's is not traced; and no descriptor stays
 * open, except connections that are held, of which there are as many as there may be at the most.
 * The stack's user is one that the machine does not have: nothing that the fuzzer asks for reaches
 * another process.
 */
#include "turns.h"

#include "holder/isolation.h"
#include "holder/warden/requests.h"
#include "holder/warden/tracer.h"
#include "holder/warden/wire.h"
#include "host/message.h"
#include "test/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH_MOST 64
#define FDS_MOST    5
#define NOBODY      64999u /* the user */

static struct requests warden;
static int carrier;
static int baseline;
static uint64_t n_refused, n_given, n_done;

static const unsigned int brings[WARDEN_WHATS] = {
	[WARDEN_CLIENT] = 1,
	[WARDEN_HOLD] = 1,
	[WARDEN_SERVANT] = 2,
};

static void begin(void)
{
	const struct isolation_user user = { .uid = NOBODY, .gid = NOBODY };
	int pair[2], questions[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions))
		turns_fail("no socket pair", 0);
	warden = (struct requests){ .channel = pair[1], .user = user, .listener = -1 };
	carrier = pair[0];
	tracer_begin(questions[1], &user);
	baseline = test_open_descriptors(256);
}

static int32_t number(struct rng *r)
{
	static const int32_t likely[] = { 0, 1, -1, 2, 60, 61, INT32_MAX, INT32_MIN };

	switch (rng_below(r, 3)) {
	case 0:
		return likely[rng_below(r, sizeof(likely) / sizeof(*likely))];
	case 1:
		return getpid();
	default:
		return (int32_t)rng_below(r, UINT32_MAX);
	}
}

/* What comes back is judged by what was sent. */
static void judge(const struct warden_request *q, size_t len, unsigned int fds)
{
	const bool proper = len == sizeof(*q) && q->what && q->what < WARDEN_WHATS &&
			    fds == brings[q->what];
	struct warden_answer a;
	struct guise_message m;
	long n = guise_message_receive(carrier, &a, sizeof(a), &m);

	if (n != (long)sizeof(a) || m.fds > 1)
		turns_fail("an answer of another size", q->what);
	if (!proper && (a.result != -EPROTO || m.fds))
		turns_fail("what is not proper is done", q->what);
	if (proper && (q->what == WARDEN_SEIZE || q->what == WARDEN_RELEASE) && !a.result)
		turns_fail("a process of another user is traced", q->about);
	if (proper && (q->what == WARDEN_LISTEN || q->what == WARDEN_GUEST_TABLE) && !a.result)
		turns_fail("what the plan does not say is done", q->what);
	n_refused += a.result < 0;
	n_done += a.result >= 0;
	n_given += m.fds;
	guise_message_close(&m);
}

static void turn(struct rng *r, uint64_t nth)
{
	unsigned char message[LENGTH_MOST];
	struct warden_request q = {
		.what = rng_below(r, 8) ? rng_below(r, WARDEN_WHATS + 1) : rng_below(r, UINT32_MAX),
		.about = number(r),
		.word = rng_below(r, 2) ? rng_below(r, 6) : rng_below(r, UINT32_MAX),
	};
	size_t len = rng_below(r, 8) ? sizeof(q) : 1 + rng_below(r, LENGTH_MOST);
	unsigned int fds = rng_below(r, FDS_MOST + 1);
	int fd[FDS_MOST];

	(void)nth;
	if (q.what < WARDEN_WHATS && rng_below(r, 4))
		fds = brings[q.what];
	/* A proper one would start this program. */
	if (q.what == WARDEN_SERVANT && fds == brings[WARDEN_SERVANT])
		fds = 0;
	memset(message, (int)rng_below(r, 256), sizeof(message));
	memcpy(message, &q, len < sizeof(q) ? len : sizeof(q));
	for (unsigned int i = 0; i < fds; i++)
		fd[i] = rng_below(r, 2) ? 0 : carrier;
	if (guise_message_send(carrier, message, len, fd, fds))
		turns_fail("it cannot be sent", (int64_t)len);
	if (!requests_answer(&warden))
		turns_fail("the warden takes it for the end", (int64_t)len);
	judge(&q, len, fds);
	if (warden.n_held > REQUESTS_HELD)
		turns_fail("more connections are held than may be", warden.n_held);
	if (test_open_descriptors(256) != baseline + (int)warden.n_held)
		turns_fail("a descriptor stays open", q.what);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "warden",
		.where = "the warden",
		.begin = begin,
		.turn = turn,
		.sums = { { "refused", &n_refused }, { "done", &n_done }, { "given", &n_given } },
	};

	return turns_main(&fuzzer, argc, argv);
}
