// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bells that come after a process has joined: a holder without a kernel, which is a child of the
 * test, and the test as its member. They share a region and a channel.
 */
#include "region/additions.h"

#include "host/sys.h"
#include "region/ask.h"
#include "region/bell.h"
#include "region/serve.h"
#include "region/vcpu.h"

#include "test/holder.h"
#include "test/tap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MEMBER 2
#define MOST   128 /* bells */

static struct guise_server server;
static struct guise_stack holder, member;
static struct guise_slot *self;

/* Of the holder, which reads it: what it does with requests. */
static enum { GIVES, IS_MUTE, GIVES_TWICE, MAKES_MORE } * conduct;

static int answer(void *context, enum guise_ask what, unsigned int proc, int32_t about)
{
	const unsigned int first = (unsigned int)about;

	if (what == GUISE_ASK_LET_GO) { /* here: ring a bell, same() asks for it */
		guise_ring_bell(&holder, first);
		return 0;
	}
	if (what != GUISE_ASK_BELLS || *conduct == IS_MUTE)
		return -EINVAL;
	if (*conduct == MAKES_MORE)
		return guise_bells_make(&holder, 2 * first);
	if (*conduct == GIVES_TWICE)
		guise_bells_give(context, proc, first - 1);
	return guise_bells_give(context, proc, first);
}

static void hold(void)
{
	pthread_t answers;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (guise_answers_start(&holder, &answers, answer, &server))
		abort();
	pthread_join(answers, NULL);
	_exit(0);
}

static pid_t make(void)
{
	int ticket[2], channel[2];
	pid_t pid;

	conduct = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	test_holder(&holder, ticket);
	if (conduct == MAP_FAILED || guise_server_init(&server, &holder, ticket[1]) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channel))
		abort();
	holder.region->bells_most = MOST;
	holder.region->procs[MEMBER].used = 1;
	server.control[MEMBER] = channel[0];
	pid = fork();
	if (!pid)
		hold();

	member = holder;
	member.alive = server.alive[0];
	member.creator = false;
	member.control = channel[1];
	member.proc = MEMBER;
	self = &member.slots[1];
	self->used = 1;
	self->tid = (int32_t)host_sys(SYS_gettid);
	return pid;
}

/* What the holder rings as bell i rings as the member's. */
static bool same(unsigned int i)
{
	struct pollfd p = { .fd = member.bell[i], .events = POLLIN };
	char rung[8];

	guise_ask(&member, GUISE_ASK_LET_GO, (int32_t)i);
	return p.fd >= 0 && poll(&p, 1, 5000) == 1 &&
	       read(p.fd, rung, sizeof(rung)) == sizeof(rung);
}

static void sleeps(bool alone)
{
	guise_additions_keep_up(&member, self, alone);
}

/* Sleeps twice: for the answer to a request that the first time makes. */
static void sleeps_and_again(bool alone)
{
	sleeps(alone);
	while (guise_asked(&member) == GUISE_ASK_BELLS)
		usleep(100);
	sleeps(alone);
}

static void twice_as_many(void)
{
	bool all = true;

	sleeps(true);
	tap(member.bells == GUISE_BELLS_FIRST && member.region->bells == member.bells,
	    "a thread with a bell of its own gets no more");
	sleeps_and_again(false);
	tap(member.bells == 2 * GUISE_BELLS_FIRST && member.region->bells == member.bells,
	    "a thread that shares one has the holder make twice as many");
	for (unsigned int i = 0; i < member.bells; i++)
		all = all && same(i);
	tap(all, "the member has the holder's bells, in their order");
	tap(member.bell[GUISE_BELLS_FIRST] > 256, "their numbers are out of a program's way");
}

/* Others have had more made. */
static void keeps_up(void)
{
	struct guise_slot *other = &member.slots[2];
	const unsigned int bell = member.bells;

	*conduct = MAKES_MORE;
	guise_ask(&member, GUISE_ASK_BELLS, (int32_t)member.bells);
	*conduct = GIVES;
	tap(member.region->bells == 2 * bell, "others have more made");
	sleeps(true);
	tap(member.bells == bell, "a member that has nothing to do with them does not get them");
	other->used = 1;
	other->bell = bell;
	guise_bell_owed(&member, other);
	tap(other->bell == guise_bell_first(bell),
	    "it wakes who sleeps on them by one of the first");
	sleeps_and_again(true);
	tap(member.bells == 2 * bell && same(bell), "and gets them when it next goes to sleep");
}

static void no_answer(void)
{
	const unsigned int had = member.bells;

	*conduct = IS_MUTE;
	sleeps_and_again(false);
	*conduct = GIVES;
	tap(member.bells == had && member.additions_next > guise_host_now(),
	    "a member that gets none goes on with those it has");
	sleeps_and_again(false);
	tap(member.bells == had, "and does not ask again at once");
	member.additions_next = guise_host_now();
	sleeps_and_again(false);
	tap(member.bells == 2 * had, "but later");
}

static void another_request_comes_between(pid_t pid)
{
	const unsigned int had = member.bells = GUISE_BELLS_FIRST;

	kill(pid, SIGSTOP);
	sleeps(false);
	sleeps(false);
	tap(guise_asked(&member) == GUISE_ASK_BELLS && member.bells == had,
	    "a member does not wait for a holder that is stopped");
	kill(pid, SIGCONT);
	guise_ask(&member, GUISE_ASK_TRACE, 0);
	sleeps_and_again(false);
	tap(member.bells > had, "another request comes between, and it gets them");
	while (member.bells < member.region->bells)
		sleeps_and_again(false);
	member.additions_next = 0;
}

/* What came too late for one request is there at the next. */
static void late_answer(void)
{
	const unsigned int had = member.bells;

	*conduct = GIVES_TWICE;
	sleeps_and_again(false);
	*conduct = GIVES;
	tap(member.bells == 2 * had && same(had) && same(member.bells - 1),
	    "bells that come twice are kept once");
}

static void not_for_a_vfork_child(void)
{
	const unsigned int had = member.bells = GUISE_BELLS_FIRST;

	self->tid++;
	sleeps_and_again(false);
	tap(member.bells == had, "a thread that uses its parent's slot gets none");
	self->tid--;
}

static void not_for_tables_apart(void)
{
	guise_additions_stay(&member);
	sleeps_and_again(false);
	tap(member.bells == GUISE_BELLS_FIRST,
	    "a member whose threads have tables of descriptors of their own gets none");
}

static void no_descriptors(void)
{
	const struct rlimit limit = { 4096, 4096 };
	bool filled[4096];

	if (setrlimit(RLIMIT_NOFILE, &limit))
		abort();
	for (int fd = 0; fd < 4096; fd++) {
		filled[fd] = fcntl(fd, F_GETFD) < 0;
		if (filled[fd])
			dup2(0, fd);
	}
	member.additions_next = 0;
	sleeps_and_again(false);
	tap(member.bells == GUISE_BELLS_FIRST && member.additions_next,
	    "a member without room for descriptors goes on with the bells it has");
	tap(same(0), "which ring");
	for (int fd = 0; fd < 4096; fd++)
		if (filled[fd])
			close(fd);
}

int main(void)
{
	pid_t pid = make();
	int status;

	twice_as_many();
	keeps_up();
	no_answer();
	late_answer();
	another_request_comes_between(pid);
	tap(member.bells == MOST, "there are no more than the most");
	member.additions_next = 0;
	sleeps_and_again(false);
	tap(member.bells == MOST && !member.additions_next,
	    "and a member that has all asks no more");
	not_for_a_vfork_child();
	no_descriptors();
	not_for_tables_apart();
	guise_answers_stop(&member, 0);
	tap(waitpid(pid, &status, 0) == pid && !status, "the holder ends");
	return tap_end();
}
