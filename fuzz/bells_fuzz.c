// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the messages that bring a process more bells (lib/region/additions.c): a member
 * of a stack without a kernel, whose channel brings anything.
 *
 *	bells_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn puts some messages into the channel, from a proper one to noise, with any number of
 * descriptors, and has a thread of the member go to sleep. Whatever came: the member has the bells
 * that a proper message brought it, in their order, and no others; each is out of the program's
 * way and closed at exec; what was not kept is closed; and nothing is left in the channel.
 */
#include "turns.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/additions.h"
#include "test/holder.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LENGTH_MOST   64 /* of a message; a proper one has 4 bytes */
#define MESSAGES_MOST 3  /* in a turn */
#define FDS_MOST      4096

static struct guise_stack member;
static struct guise_slot *self;
static int channel;  /* the other end */
static int baseline; /* descriptors beside the bells */
static uint64_t n_messages, n_proper, n_noise, n_bells, n_full;

/* What is sent: each can be told from the others. And which of them the member is to have. */
static int sent[GUISE_BELLS];
static unsigned int expected[GUISE_BELLS];

static void begin(void)
{
	const struct rlimit limit = { 1024, FDS_MOST };
	int ticket[2], pair[2];

	turns_need(!setrlimit(RLIMIT_NOFILE, &limit), "no limit of descriptors");
	test_holder(&member, ticket);
	turns_need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		   "no channel");
	member.creator = false;
	member.control = pair[0];
	channel = pair[1];
	member.region->bells_most = GUISE_BELLS;
	member.proc = 1;
	self = &member.slots[1];
	self->used = 1;
	self->tid = (int32_t)host_sys(SYS_gettid);
	for (unsigned int i = 0; i < GUISE_BELLS; i++) {
		sent[i] = memfd_create("bell", MFD_CLOEXEC);
		turns_need(sent[i] >= 0, "no descriptor");
	}
	baseline = test_open_descriptors(FDS_MOST) - (int)member.bells;
}

static bool is(int fd, int of)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstat(of, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* A message, for a member that has so many bells; how many it has after it. */
static unsigned int message(struct rng *r, unsigned int have)
{
	unsigned int first = rng_below(r, GUISE_BELLS), n;
	const unsigned int most = GUISE_BELLS - first;
	uint8_t bytes[LENGTH_MOST];
	uint32_t number = have;
	size_t len = sizeof(number);

	n = rng_below(r, (rng_one_in(r, 4) || most < 8 ? most : 8) + 1);
	if (rng_one_in(r, 3))
		number = rng_one_in(r, 2) ? (uint32_t)rng_next(r) : rng_below(r, GUISE_BELLS);
	if (rng_one_in(r, 3))
		len = rng_below(r, LENGTH_MOST) + !n; /* nothing at all is the end */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_next(r);
	memcpy(bytes, &number, sizeof(number));
	test_send(channel, bytes, len, &sent[first], (int)n);
	n_messages++;
	if (len != sizeof(number) || number != have || n > GUISE_BELLS - have) {
		n_noise++;
		return have;
	}
	for (unsigned int i = 0; i < n; i++)
		expected[have + i] = first + i;
	n_proper++;
	return have + n;
}

static void judge(unsigned int have, int low)
{
	uint8_t byte;
	int extra;

	if (member.bells != have)
		turns_fail("the member has other bells than proper messages brought",
			   (int)(member.bells - have));
	for (unsigned int i = GUISE_BELLS_FIRST; i < have; i++) {
		if (!is(member.bell[i], sent[expected[i]]))
			turns_fail("a bell is another one than was sent", i);
		if (member.bell[i] < low || fcntl(member.bell[i], F_GETFD) != FD_CLOEXEC)
			turns_fail("a bell is in the program's way, or stays at exec", i);
	}
	if (recv(member.control, &byte, sizeof(byte), MSG_DONTWAIT) >= 0)
		turns_fail("a message was left in the channel", byte);
	extra = test_open_descriptors(FDS_MOST) - baseline - (int)have;
	if (extra)
		turns_fail("a descriptor is left open, or one too many is closed", extra);
}

static void turn(struct rng *r, uint64_t number)
{
	unsigned int have = member.bells;

	(void)number;
	if (have == member.region->bells_most) { /* it asks for no more */
		n_full++;
		while (have > GUISE_BELLS_FIRST)
			close(member.bell[--have]);
		member.bells = have;
	}
	for (uint32_t i = rng_below(r, MESSAGES_MOST + 1); i; i--)
		have = message(r, have);
	member.additions_next = 0;
	/* Who comes for an answer reads what is in the channel. */
	member.region->procs[member.proc].ask = GUISE_ASK_ANSWERED;
	guise_additions_keep_up(&member, self, false);
	judge(have, guise_fd_low(FDS_MOST));
	n_bells = have > n_bells ? have : n_bells;
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "bells",
		.where = "what brings bells",
		.begin = begin,
		.turn = turn,
		.sums = { { "messages", &n_messages },
			  { "proper", &n_proper },
			  { "noise", &n_noise },
			  { "most", &n_bells },
			  { "full", &n_full } },
	};

	return turns_main(&fuzzer, argc, argv);
}
