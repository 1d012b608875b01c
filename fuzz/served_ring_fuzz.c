// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the ring of a served program (lib/served/ring.h): a servant with the kernel that
 * is shipped, and a program that writes into the ring what it likes, at any time.
 *
 *	served_ring_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn makes a call in each of some lanes (served_call.h), and changes one word of the ring while
 * the servant and the kernel read it: a number, an argument, a length or a pointer in a structure,
 * or a word of the ring's own flips between two values. After some turns all is examined:
 *
 *	the servant lives, and answers each lane
 *	the memory around its ring, and some that it has elsewhere, is as it was, and no part of it
 *	has come into the ring
 *	no call was made that is for members alone
 *	an honest program, which is served as well, makes a connection
 *	the kernel has not warned
 *
 * After LIFE_TURNS the program leaves, its servant must end without an error, and another one
 * begins. The kernel of a test build has a bug that this must find (guise_user() in task.c).
 */
#include "turns.h"

#include "inside.h"
#include "served.h"
#include "served_call.h"

#include "guise/syscall.h"
#include "holder/servant/servant.h"
#include "host/message.h"
#include "region/join.h"
#include "region/vcpu.h"
#include "served/client.h"
#include "served/servant.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define YARD_FD        200 /* in servants, too */
#define MARGIN         65536ul
#define LANES          4 /* that are used in each life; and now and then others */
#define NUMBERS        7 /* of calls: 1 to NUMBERS; those of examinations are above */
#define EXAMINED_TURNS 50
#define LIFE_TURNS     500
#define CALL_NS        200000ull
#define ANSWER_NS      20000000000ull
#define HANG_S         100

/* What a servant has around its ring, and elsewhere; shared with the fuzzer, which looks at it. */
struct yard {
	char before[MARGIN], after[MARGIN], victim[MARGIN];
	pid_t pid;
	uint64_t victim_at;
};

static struct yard *yard;
static const char secret[] = "\x93own\xe7mem";
#define SECRET (sizeof(secret) - 1)
static char untouched[MARGIN];
static struct guise_stack *stack, *honest, *hostile;
static pid_t honest_servant, hostile_servant;
static struct guise_ring *ring;
static struct served_targets targets;
static uint32_t examination;
static uint64_t n_calls, n_done, n_faults, n_refused, n_examined, n_servants;

/* ---- the servant ----------------------------------------------------------------------------- */

/* The ring lies between two parts of the yard. */
static void fence(struct guise_servant *v)
{
	const int prot = PROT_READ | PROT_WRITE;
	char *at = mmap(NULL, GUISE_RING_SIZE + 2 * MARGIN, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct yard *y = mmap(NULL, sizeof(*y), prot, MAP_SHARED, YARD_FD, 0);

	if (at == MAP_FAILED || y == MAP_FAILED ||
	    mmap(at, MARGIN, prot, MAP_SHARED | MAP_FIXED, YARD_FD,
		 offsetof(struct yard, before)) == MAP_FAILED ||
	    mremap(v->ring, GUISE_RING_SIZE, GUISE_RING_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   at + MARGIN) == MAP_FAILED ||
	    mmap(at + MARGIN + GUISE_RING_SIZE, MARGIN, prot, MAP_SHARED | MAP_FIXED, YARD_FD,
		 offsetof(struct yard, after)) == MAP_FAILED)
		_exit(2);
	v->ring = (struct guise_ring *)(at + MARGIN);
	y->pid = getpid();
	y->victim_at = (uint64_t)y->victim;
}

static void *run(void *v)
{
	guise_servant_run(v);
}

/* As that of holder/servant/servant.c, with the ring alone. */
static int serve(char **argv)
{
	int channel = atoi(argv[2]), end = atoi(argv[3]), err;
	struct guise_join_reply r = guise_join_reply(GUISE_JOIN_RING);
	struct pollfd p = { .fd = channel };
	int fd[1 + GUISE_LANE_BELLS];
	struct guise_servant *v;
	struct guise_stack *s;
	pthread_t thread;

	if (fork())
		_exit(0);
	signal(SIGPIPE, SIG_IGN);
	s = guise_join_enter(end, GUISE_JOIN_ENTER, &err);
	v = s ? guise_servant_make(s) : NULL;
	if (!v)
		return 3;
	fence(v);
	s->console_fd = SERVED_CONSOLE;
	fd[0] = v->fd;
	memcpy(fd + 1, v->bell, sizeof(v->bell));
	r.fds = 1 + GUISE_LANE_BELLS;
	if (pthread_create(&thread, NULL, run, v) ||
	    guise_message_send(channel, &r, sizeof(r), fd, r.fds))
		return 4;
	while (poll(&p, 1, -1) < 0 || !(p.revents & POLLHUP))
		;
	guise_leave_quietly();
	_exit(0);
}

/* ---- the programs ---------------------------------------------------------------------------- */

static void hangs(int sig)
{
	static const char said[] = "FOUND in the served ring: an honest call does not end\n";

	(void)sig;
	if (write(STDOUT_FILENO, said, sizeof(said) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* It is out of the other's reach, but for the ring: both have the rights of one user. */
static void begin_honest(void)
{
	honest = served_join();
	honest_servant = yard->pid;
	if (guise_call(honest, GUISE_NR_unshare, CLONE_NEWNET | CLONE_NEWNS, 0, 0, 0, 0, 0) ||
	    guise_link_set(honest, "lo", 1))
		turns_found("an honest program cannot begin: %s", guise_error());
}

static void aim(uint64_t address)
{
	targets.address[targets.n++] = address;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void ask(struct guise_lane *lane, uint32_t number)
{
	__atomic_store_n(&lane->asked, number, __ATOMIC_SEQ_CST);
	guise_futex_wake(&lane->asked, 1);
}

static void interrupt(struct guise_lane *lane, uint32_t number)
{
	__atomic_store_n(&lane->interrupt, number, __ATOMIC_SEQ_CST);
	guise_ring_call_servant(ring);
}

static bool answered(const struct guise_lane *lane, uint32_t number)
{
	return __atomic_load_n(&lane->answered, __ATOMIC_ACQUIRE) == number;
}

/* A call that is made as it is. */
static long plain(unsigned int i, uint64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t until = guise_host_now() + ANSWER_NS, arg[6] = { a, b, c, d };
	struct guise_lane *lane = guise_ring_lane(ring, i);
	const uint32_t number = ++examination + NUMBERS;

	lane->nr = nr;
	memcpy(lane->arg, arg, sizeof(arg));
	ask(lane, number);
	while (!answered(lane, number))
		if (guise_host_now() > until)
			turns_fail("a new lane is not answered", i);
	return lane->ret;
}

/* With some descriptors. It is to fill the stack with files no more than mounts: they would stay
 * when it has ended. */
static void settle(void)
{
	static const uint64_t types[] = { SOCK_STREAM, SOCK_DGRAM };
	struct rlimit64 *none = (void *)guise_ring_room(ring, 0);

	ring->lanes = LANES;
	guise_ring_call_servant(ring);
	for (unsigned int i = 0; i < LANES; i++)
		plain(i, GUISE_NR_unshare, CLONE_NEWNS, 0, 0, 0);
	memset(none, 0, sizeof(*none));
	plain(0, GUISE_NR_prlimit64, 0, RLIMIT_FSIZE, (uint64_t)none, 0);
	for (unsigned int i = 0; i < 2; i++) {
		plain(0, GUISE_NR_socket, AF_INET, types[i], 0, 0);
		plain(0, GUISE_NR_socket, AF_INET6, types[i], 0, 0);
		plain(0, GUISE_NR_socketpair, AF_UNIX, types[i], 0,
		      (uint64_t)guise_ring_room(ring, 0));
		plain(0, GUISE_NR_pipe2, (uint64_t)guise_ring_room(ring, 0), 0, 0, 0);
	}
	plain(0, GUISE_NR_socket, AF_NETLINK, SOCK_RAW, 0, 0);
	plain(0, GUISE_NR_epoll_create1, 0, 0, 0, 0);
	plain(0, GUISE_NR_eventfd2, 0, 0, 0, 0);
	plain(0, GUISE_NR_timerfd_create, 1, 0, 0, 0);
}

static void begin_hostile(void)
{
	hostile = served_join();
	hostile_servant = yard->pid;
	ring = hostile->served->ring;
	n_servants++;
	settle();
	targets.n = 0;
	aim((uint64_t)ring);
	aim((uint64_t)ring - MARGIN);
	aim((uint64_t)ring + GUISE_RING_SIZE);
	aim((uint64_t)ring + GUISE_RING_SIZE);
	aim((uint64_t)ring + GUISE_RING_SIZE + MARGIN);
	/* Not a lane that is used: the kernel would write what call is made there, and by which
	 * number it is answered and ended. flip_any() changes such words. */
	aim((uint64_t)guise_ring_room(ring, LANES));
	aim(yard->victim_at);
	aim((uint64_t)stack->region);
	aim((uint64_t)stack->slots);
	aim((uint64_t)stack->image);
	aim(stack->region->ram);
	aim(1ull << 47);
	aim(0);
}

static void begin(void)
{
	int fd = memfd_create("yard", 0);

	turns_need(fd >= 0 && !ftruncate(fd, sizeof(*yard)) && dup2(fd, YARD_FD) == YARD_FD,
		   "no memory file");
	close(fd);
	yard = mmap(NULL, sizeof(*yard), PROT_READ | PROT_WRITE, MAP_SHARED, YARD_FD, 0);
	turns_need(yard != MAP_FAILED, "no memory");
	for (size_t i = 0; i < MARGIN; i++)
		untouched[i] = secret[i % SECRET];
	memcpy(yard->before, untouched, MARGIN);
	memcpy(yard->after, untouched, MARGIN);
	memcpy(yard->victim, untouched, MARGIN);
	signal(SIGALRM, hangs);
	alarm(HANG_S);
	stack = served_begin();
	begin_honest();
	begin_hostile();
}

/* ---- a turn ---------------------------------------------------------------------------------- */

/* An address of the stack's memory that it was not given. */
static bool is_new_address(uint64_t ret)
{
	for (unsigned int i = 0; i < targets.n; i++)
		if (ret - targets.address[i] + 4096 < 8192)
			return false;
	return ret - stack->region->base < stack->region->size;
}

static void judge(const struct guise_lane *lane)
{
	uint64_t ret = (uint64_t)__atomic_load_n(&lane->ret, __ATOMIC_RELAXED);

	n_calls++;
	n_done += (int64_t)ret >= 0;
	n_faults += (int64_t)ret == -EFAULT;
	n_refused += (int64_t)ret == -ENOSYS;
	if (is_new_address(ret))
		turns_fail("a call was made that is for members alone", (int64_t)ret);
}

/* A word of the ring that is not the calls'. */
static uint64_t *word_of_ring(struct rng *r)
{
	switch (rng_below(r, 4)) {
	case 0:
		return &ring->address;
	case 1:
		return &ring->count[rng_below(r, GUISE_COUNTS)];
	default: /* servant_sleeps, interrupt; event to signals */
		return (uint64_t *)(void *)((char *)guise_ring_lane(ring, rng_below(r, LANES)) +
					    (rng_one_in(r, 2) ? 8 : 64 + 8 * rng_below(r, 2)));
	}
}

/* A word that has two values, by turns. */
struct flip {
	uint64_t *at, one, other;
};

static struct flip flip_any(struct rng *r)
{
	uint64_t *at = rng_one_in(r, 4) ? word_of_ring(r) : served_call_word(r);
	struct flip f = { at, __atomic_load_n(at, __ATOMIC_RELAXED), 0 };

	f.other = rng_one_in(r, 3)   ? rng_next(r)
		  : rng_one_in(r, 2) ? targets.address[rng_below(r, targets.n)]
				     : f.one ^ 1ull << rng_below(r, 64);
	return f;
}

/* A call that anybody may make, and one that is for members alone. */
static struct flip flip_number(struct guise_lane *lane)
{
	lane->nr = GUISE_NR_getppid;
	lane->arg[0] = 4096;
	return (struct flip){ &lane->nr, GUISE_NR_getppid, GUISE_NR_ALLOC };
}

/* While the calls are made. */
static void change(const struct flip *f, struct guise_lane *const *lane, const uint32_t *number,
		   unsigned int n)
{
	const uint64_t until = guise_host_now() + CALL_NS;
	unsigned int left;

	do {
		for (int i = 0; i < 64; i++) {
			__atomic_store_n(f->at, f->other, __ATOMIC_RELAXED);
			__atomic_store_n(f->at, f->one, __ATOMIC_RELAXED);
		}
		left = 0;
		for (unsigned int i = 0; i < n; i++)
			left += !answered(lane[i], number[i]);
	} while (left && guise_host_now() < until);
	ring->address = (uint64_t)ring;
}

static void many_lanes(struct rng *r)
{
	static const uint32_t lanes[] = { GUISE_LANES, GUISE_LANES + 1, 1u << 31, ~0u, 8, 0 };

	ring->lanes = rng_pick(r, lanes);
	guise_ring_call_servant(ring);
}

static void calls(struct rng *r)
{
	unsigned int n = 1 + rng_below(r, LANES), first = rng_below(r, LANES);
	struct guise_lane *lane[LANES];
	uint32_t number[LANES];
	struct flip f;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int which = (first + i) % LANES;

		lane[i] = guise_ring_lane(ring, which);
		served_call_make(r, lane[i], guise_ring_room(ring, which), &targets);
		f = rng_one_in(r, 8) ? flip_number(lane[i]) : flip_any(r);
		do
			number[i] = 1 + rng_below(r, NUMBERS);
		while (number[i] == lane[i]->asked);
		ask(lane[i], number[i]);
	}
	change(&f, lane, number, n);
	for (unsigned int i = 0; i < n; i++)
		if (answered(lane[i], number[i]))
			judge(lane[i]);
		else
			interrupt(lane[i], number[i]);
}

/* ---- an examination -------------------------------------------------------------------------- */

/* Whatever the lanes' calls are now, they end, and plain ones are made. */
static void plain_calls(void)
{
	const uint64_t until = guise_host_now() + ANSWER_NS;
	const uint32_t number = ++examination + NUMBERS;
	struct pollfd p = { .fd = hostile->control };
	uint64_t last[LANES];
	unsigned int left = LANES;

	for (unsigned int i = 0; i < LANES; i++) {
		struct guise_lane *lane = guise_ring_lane(ring, i);

		last[i] = lane->nr;
		lane->nr = GUISE_NR_getppid;
		lane->answered = 0;
		ask(lane, number);
	}
	for (uint32_t look = 0; left; look++) {
		left = 0;
		for (unsigned int i = 0; i < LANES; i++) {
			struct guise_lane *lane = guise_ring_lane(ring, i);

			if (answered(lane, number))
				continue;
			left++;
			interrupt(lane, 1 + look % NUMBERS);
			if (guise_host_now() > until)
				turns_found("lane %u is not answered any more; its call was %llu",
					    i, (unsigned long long)last[i]);
		}
		if (poll(&p, 1, look > NUMBERS) > 0)
			turns_fail("the servant has ended", hostile_servant);
	}
}

static void all_answer(void)
{
	/* While the last of the others is made it may still write anywhere in the ring, also where
	 * a plain one is asked for. */
	plain_calls();
	plain_calls();
	for (unsigned int i = 0; i < LANES; i++)
		if (guise_ring_lane(ring, i)->ret < 0)
			turns_fail("a plain call fails", guise_ring_lane(ring, i)->ret);
}

static void look_at_yard(void)
{
	const struct {
		const char *name, *at;
	} part[] = { { "before the ring", yard->before },
		     { "after the ring", yard->after },
		     { "elsewhere", yard->victim } };

	for (unsigned int k = 0; k < 3; k++)
		for (size_t i = 0; i < MARGIN; i++)
			if (part[k].at[i] != untouched[i])
				turns_found("the servant's memory %s was written, at %zu",
					    part[k].name, i);
	for (unsigned int i = 0; i < LANES; i++)
		if (memmem(guise_ring_room(ring, i), SERVED_CALL_ROOM, secret, SECRET))
			turns_fail("the servant's memory was read into the ring", i);
}

static void examine(void)
{
	const char *wrong;

	ring->lanes = LANES;
	guise_ring_call_servant(ring);
	all_answer();
	look_at_yard();
	served_examine();
	wrong = inside_loopback(honest);
	if (wrong)
		turns_found("for an honest program %s", wrong);
	n_examined++;
	alarm(HANG_S);
}

static void turn(struct rng *r, uint64_t number)
{
	if (rng_one_in(r, 200))
		many_lanes(r);
	if (ring->lanes < LANES)
		ring->lanes = LANES;
	calls(r);
	if (number % EXAMINED_TURNS == EXAMINED_TURNS - 1)
		examine();
	if (number % LIFE_TURNS == LIFE_TURNS - 1) {
		served_leave(hostile, hostile_servant);
		begin_hostile();
	}
}

static void end(struct rng *r)
{
	(void)r;
	served_leave(hostile, hostile_servant);
	served_leave(honest, honest_servant);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "served_ring",
		.where = "the served ring",
		.begin = begin,
		.turn = turn,
		.end = end,
		.sums = { { "calls", &n_calls },
			  { "done", &n_done },
			  { "faults", &n_faults },
			  { "refused", &n_refused },
			  { "examined", &n_examined },
			  { "servants", &n_servants } },
	};

	if (servant_wanted(argc, argv))
		return serve(argv);
	return turns_main(&fuzzer, argc, argv);
}
