// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the messages that bring a process more bells, and other links
 * (lib/region/additions.c): a member of a stack without a kernel, whose channel brings anything.
 *
 *	additions_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn puts some messages into the channel, from a proper one to noise, with any number of
 * descriptors, and has a thread of the member go to sleep. Whatever came: the member has the bells
 * that a proper message brought it, in their order, and no others; the links of the first proper
 * message of links, as far as the stack has these links; each descriptor is out of the program's
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

#define LENGTH_MOST   128 /* of a message; a proper one has sizeof(struct guise_addition) */
#define MESSAGES_MOST 3   /* in a turn */
#define FDS_MOST      4096
#define GENERATION    100 /* of the stack's first link; the next has the next */

static struct guise_stack member;
static struct guise_slot *self;
static int channel;  /* the other end */
static int baseline; /* descriptors beside the bells and links */
static uint64_t n_messages, n_proper, n_noise, n_bells, n_links;

/* What is sent: each can be told from the others. And which of them the member is to have. */
static int sent[GUISE_BELLS];
static unsigned int expected[GUISE_BELLS];
static struct guise_addition links; /* the proper message of links in this turn */
static unsigned int links_first;    /* of sent[], with that */
static bool links_came;

/* A link that the member has is kept as it is, so it begins without any. */
static void lose_links(void)
{
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		for (unsigned int k = 0; k < GUISE_LINK_FDS; k++)
			if (member.port[i].fd[k] >= 0)
				close(member.port[i].fd[k]);
		member.port[i] = (struct guise_link_port){ .fd = { -1, -1, -1 } };
	}
}

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
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		struct guise_link *link = &member.region->links[i];

		link->used = 1;
		link->generation = GENERATION + i;
		strcpy(link->kind, "tap");
	}
	lose_links();
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

/* Of links, with n descriptors or another number. */
static void fill_links(struct rng *r, struct guise_addition *a, unsigned int n)
{
	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		unsigned int of = rng_below(r, GUISE_LINK_FDS + 1);

		if (of > n)
			of = n;
		n -= of;
		a->fds[i] = (uint8_t)of;
		a->generation[i] = of ? GENERATION + i : 0;
		if (rng_one_in(r, 12))
			a->generation[i] = rng_one_in(r, 2) ? 0 : (uint32_t)rng_next(r);
		if (rng_one_in(r, 48))
			a->fds[i] = (uint8_t)rng_next(r);
	}
}

static bool are_links(const struct guise_addition *a, unsigned int n)
{
	unsigned int sum = 0;
	bool good = true;

	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		good = good && a->fds[i] <= GUISE_LINK_FDS && !a->fds[i] == !a->generation[i];
		sum += a->fds[i];
	}
	return good && sum == n;
}

/* A message, for a member that has so many bells; how many it has after it. */
static unsigned int message(struct rng *r, unsigned int have)
{
	unsigned int first = rng_below(r, GUISE_BELLS), n;
	const unsigned int most = GUISE_BELLS - first;
	const bool of_links = rng_one_in(r, 3);
	struct guise_addition a = { .what = of_links ? GUISE_ASK_LINKS : GUISE_ASK_BELLS };
	uint8_t bytes[LENGTH_MOST];
	size_t len = sizeof(a);

	n = rng_below(r, (rng_one_in(r, 4) || most < 8 ? most : 8) + 1);
	a.first = of_links ? (uint32_t)rng_next(r) : have;
	if (of_links)
		fill_links(r, &a, n);
	else if (rng_one_in(r, 3))
		a.first = rng_one_in(r, 2) ? (uint32_t)rng_next(r) : rng_below(r, GUISE_BELLS);
	if (rng_one_in(r, 8))
		a.what = (uint32_t)rng_next(r);
	if (rng_one_in(r, 4))
		len = rng_below(r, LENGTH_MOST) + !n; /* nothing at all is the end */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_next(r);
	memcpy(bytes, &a, sizeof(a));
	test_send(channel, bytes, len, &sent[first], (int)n);
	n_messages++;
	if (len == sizeof(a) && a.what == GUISE_ASK_LINKS && are_links(&a, n) && !links_came) {
		links = a;
		links_first = first;
		links_came = true;
		n_links++;
		return have;
	}
	if (len != sizeof(a) || a.what != GUISE_ASK_BELLS || a.first != have ||
	    n > GUISE_BELLS - have) {
		n_noise++;
		return have;
	}
	for (unsigned int i = 0; i < n; i++)
		expected[have + i] = first + i;
	n_proper++;
	return have + n;
}

/* How many descriptors of links there are to be: those that came last. */
static int judge_links(int low)
{
	unsigned int at = links_first;
	int n = 0;

	for (unsigned int i = 0; i < GUISE_MAX_LINKS; i++) {
		const struct guise_link_port *port = &member.port[i];

		for (unsigned int k = 0; k < GUISE_LINK_FDS; k++)
			if (port->fd[k] >= 0) {
				n++;
				if (port->fd[k] < low || fcntl(port->fd[k], F_GETFD) != FD_CLOEXEC)
					turns_fail("a link is in the program's way", i);
			}
		if (!links_came)
			continue;
		for (unsigned int k = 0; k < links.fds[i]; k++)
			if (links.generation[i] == GENERATION + i &&
			    (!port->backend || !is(port->fd[k], sent[at + k])))
				turns_fail("a link is another one than was sent", i);
		if (links.generation[i] != GENERATION + i && port->backend)
			turns_fail("a link that is gone is there", i);
		at += links.fds[i];
	}
	return n;
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
	extra = test_open_descriptors(FDS_MOST) - baseline - (int)have - judge_links(low);
	if (extra)
		turns_fail("a descriptor is left open, or one too many is closed", extra);
}

static void turn(struct rng *r, uint64_t number)
{
	unsigned int have = member.bells;

	(void)number;
	if (have == member.region->bells_most) /* it asks for no more */
		while (have > GUISE_BELLS_FIRST)
			close(member.bell[--have]);
	member.bells = have;
	links_came = false;
	lose_links();
	for (uint32_t i = rng_below(r, MESSAGES_MOST + 1); i; i--)
		have = message(r, have);
	member.additions_next = 0;
	/* Its links are not the stack's. */
	member.region->links_now = member.links_seen + 1;
	/* Who comes for an answer reads what is in the channel. */
	member.region->procs[member.proc].ask = GUISE_ASK_ANSWERED;
	guise_additions_keep_up(&member, self, false);
	guise_additions_place(&member);
	judge(have, guise_fd_low(FDS_MOST));
	n_bells = have > n_bells ? have : n_bells;
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "additions",
		.where = "what brings bells and links",
		.begin = begin,
		.turn = turn,
		.sums = { { "messages", &n_messages },
			  { "proper", &n_proper },
			  { "noise", &n_noise },
			  { "most", &n_bells },
			  { "links", &n_links } },
	};

	return turns_main(&fuzzer, argc, argv);
}
