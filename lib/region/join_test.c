// SPDX-License-Identifier: GPL-2.0-only
/*
 * The join protocol, with a holder that has a region but no kernel: which
 * messages are judged well-formed; that a joiner gets what it needs; that
 * nonsense, foreign channels and other versions are refused with a sentence,
 * counted, and leave no descriptor open; that a member's death is seen, and what
 * it leaves behind among waiting threads is cleared away.
 */
#include "region/join.h"

#include "region/bury.h"
#include "region/serve.h"
#include "region/vcpu.h"
#include "test/holder.h"
#include "test/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guise_server server;
static struct guise_stack holder;
static int ticket; /* the joiners' end */

static void judge(void)
{
	struct guise_join_request q = { .magic = GUISE_JOIN_MAGIC, .abi = GUISE_ABI, .pid = 7 };
	struct guise_join_reply good = { .magic = GUISE_JOIN_MAGIC,
					 .abi = GUISE_ABI,
					 .base = 0x7e9000000000,
					 .fds = GUISE_JOIN_FIXED_FDS + GUISE_BELLS_FIRST + 2,
					 .bells = GUISE_BELLS_FIRST,
					 .links = { [3] = 2 } };
	const int n = GUISE_JOIN_FIXED_FDS + GUISE_BELLS_FIRST + 2;
	struct guise_join_reply r;

	tap(!guise_join_check_request(&q, sizeof(q), 1), "a request");
	tap(guise_join_check_request(&q, sizeof(q) - 1, 1) == -EPROTO &&
		    guise_join_check_request(&q, sizeof(q) + 1, 1) == -EPROTO &&
		    guise_join_check_request(&q, 0, 1) == -EPROTO,
	    "not one of another length");
	tap(guise_join_check_request(&q, sizeof(q), 0) == -EPROTO &&
		    guise_join_check_request(&q, sizeof(q), 2) == -EPROTO,
	    "not without one descriptor");
	q.abi++;
	tap(guise_join_check_request(&q, sizeof(q), 1) == -EPROTONOSUPPORT &&
		    strstr(guise_error(), "another version"),
	    "not of another version");
	q.magic++;
	tap(guise_join_check_request(&q, sizeof(q), 1) == -EPROTO, "not of another protocol");

	tap(!guise_join_check_reply(&good, sizeof(good), n), "an answer");
	tap(guise_join_check_reply(&good, sizeof(good) - 8, n) == -EPROTO, "not cut");
	tap(guise_join_check_reply(&good, sizeof(good), n - 1) == -EPROTO &&
		    strstr(guise_error(), "ulimit"),
	    "not with a descriptor lost");
	r = good;
	r.links[3] = GUISE_LINK_FDS + 1;
	tap(guise_join_check_reply(&r, sizeof(r), n + 2) == -EPROTO,
	    "not with too many for a link");
	r = good;
	r.fds++;
	tap(guise_join_check_reply(&r, sizeof(r), n + 1) == -EPROTO,
	    "not with one that nobody has");
	r = good;
	r.bells--;
	r.links[3]++;
	tap(guise_join_check_reply(&r, sizeof(r), n) == -EPROTO,
	    "not with less bells than all have");
	r = good;
	r.proc = GUISE_MAX_PROCS;
	tap(guise_join_check_reply(&r, sizeof(r), n) == -EPROTO,
	    "not with a place beyond the table");
	r = good;
	r.base++;
	tap(guise_join_check_reply(&r, sizeof(r), n) == -EPROTO, "not with half a page for a base");
	r = good;
	memset(r.error, 'x', sizeof(r.error));
	tap(guise_join_check_reply(&r, sizeof(r), n) == -EPROTO, "not with an endless sentence");
	r = good;
	r.status = 1;
	tap(guise_join_check_reply(&r, sizeof(r), n) == -EPROTO, "not with a positive status");
	r.status = -EAGAIN;
	tap(!guise_join_check_reply(&r, sizeof(r), 0), "a refusal needs no descriptors");
	r.abi++;
	tap(guise_join_check_reply(&r, sizeof(r), 0) == -EPROTONOSUPPORT,
	    "but must be of this version");
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void send_raw(const void *data, size_t len, const int *fd, int n)
{
	test_send(ticket, data, len, fd, n);
}

/* The answer on a channel: its status, or 1 for none. */
static int answer_on(int channel, struct guise_join_reply *r, int *fds)
{
	return test_hear(channel, r, fds) == sizeof(*r) ? r->status : 1;
}

static void channel(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		abort();
}

static void make_holder(void)
{
	int pair[2];

	test_holder(&holder, pair);
	ticket = pair[0];
	tap(!guise_server_init(&server, &holder, pair[1]), "a holder with a region and a link");
	tap(guise_server_request(&server) == -EAGAIN, "no request waits");
}

/* A proper request, as join.c makes it, in this process. */
static void admits(void)
{
	struct guise_join_request q = { .magic = GUISE_JOIN_MAGIC,
					.abi = GUISE_ABI,
					.pid = getpid() };
	struct guise_join_reply r;
	int pair[2], fds, proc, status;

	channel(pair);
	send_raw(&q, sizeof(q), &pair[1], 1);
	close(pair[1]);
	proc = guise_server_request(&server);
	tap(proc == 2 && server.members == 1 && server.joined == 1, "a member gets a free place");
	tap(holder.region->procs[2].used && holder.region->procs[2].pid == getpid() &&
		    holder.region->procs[2].start_time && !holder.region->procs[2].dead,
	    "the region knows it by pid and start time");
	status = answer_on(pair[0], &r, &fds);
	tap(!status && r.proc == 2 && r.base == 0x7e9000000000 && r.bells == holder.region->bells &&
		    fds == GUISE_JOIN_FIXED_FDS + (int)r.bells + 2 && r.links[2] == 2,
	    "the answer has the region, the image, the pipe, the bells and the link");
	tap(!guise_join_check_reply(&r, sizeof(r), fds), "and the joiner finds it well-formed");
	tap(guise_server_hear(&server, 2), "the member lives");
	if (send(pair[0], "gibberish", 9, 0) != 9)
		abort();
	tap(guise_server_hear(&server, 2) && server.refused == 1,
	    "what it says on its channel is counted, no more");

	close(pair[0]);
	tap(!guise_server_hear(&server, 2), "its channel hangs up");
	guise_server_gone(&server, 2);
	guise_server_gone(&server, 2);
	tap(!holder.region->procs[2].dead && guise_bury_unfinished(&holder) && !server.members,
	    "its burial waits for the pump");
	guise_bury_pending(&holder);
	tap(holder.region->procs[2].dead && (holder.region->vcpu->irq_pending & GUISE_IRQ_REAP) &&
		    !guise_bury_unfinished(&holder),
	    "which marks it dead for the reaper, once");
}

/* A place for a process to come: nobody is in it until the child of this one greets. */
static void expects(void)
{
	struct guise_join_request q = { .magic = GUISE_JOIN_MAGIC,
					.abi = GUISE_ABI,
					.kind = GUISE_JOIN_HEIR };
	int pair[2], fds, proc, status;
	uint64_t refused = server.refused;
	struct guise_proc *place;
	struct guise_join_reply r;
	pid_t child;

	channel(pair);
	send_raw(&q, sizeof(q), &pair[1], 1);
	close(pair[1]);
	proc = guise_server_request(&server);
	if (!tap(proc > 0 && server.members == 1, "a process to come gets a place, and counts"))
		return;
	place = &holder.region->procs[proc];
	status = answer_on(pair[0], &r, &fds);
	tap(!status && (int)r.proc == proc && !fds && !guise_join_check_reply(&r, sizeof(r), fds),
	    "the process that asked learns which, and gets no descriptors");
	q.kind = GUISE_JOIN_NOW;
	tap(send(pair[0], &q, sizeof(q), 0) == sizeof(q) &&
		    guise_server_hear(&server, (unsigned int)proc) && place->used && !place->pid &&
		    server.refused == refused + 1,
	    "a request on the channel is none");
	child = fork();
	if (!child)
		_exit(guise_join_greet(pair[0]) != 0);
	close(pair[0]);
	tap(waitpid(child, &status, 0) == child && !status,
	    "the child greets on what it inherited");
	tap(!guise_server_hear(&server, (unsigned int)proc) && place->pid == child,
	    "the kernel says that it is the child; its end is the place's");
	guise_server_gone(&server, (unsigned int)proc);
	guise_bury_pending(&holder);
	tap(place->dead && !server.members, "which is buried then");
	memset(place, 0, sizeof(*place));

	/* Over the ticket, where only requests belong. */
	q.kind = GUISE_JOIN_GREET;
	send_raw(&q, sizeof(q), NULL, 0);
	tap(guise_server_request(&server) == -EPROTO && server.refused == refused + 2,
	    "a process that greets over the ticket is refused");
	server.refused = refused;
}

static void refuses(const char *name, const void *data, size_t len, const int *fd, int n,
		    int answered, const char *word)
{
	uint64_t before = server.refused;
	struct guise_join_reply r = { 0 };
	int fds, ret, open_before = open_descriptors();

	send_raw(data, len, fd, n);
	ret = guise_server_request(&server);
	tap(ret < 0 && ret != -EAGAIN && ret != -EPIPE && server.refused == before + 1,
	    "%s is refused and counted", name);
	if (answered >= 0)
		tap(answer_on(answered, &r, &fds) < 0 && !fds && strstr(r.error, word),
		    "... with the sentence: %s", r.error);
	tap(open_descriptors() == open_before, "... and leaves no descriptor open");
}

static struct guise_join_outside noted;

static void note(const struct guise_join_outside *what)
{
	noted = *what;
}

/* Programs on the host's stack: what is told of them is no request to join. */
static void notes(void)
{
	struct guise_join_outside q = { .request = guise_join_request(GUISE_JOIN_OUTSIDE),
					.why = GUISE_OUTSIDE_GO };
	uint64_t refused = server.refused;
	int pair[2], open_before, fds;
	struct guise_join_reply r;

	channel(pair);
	open_before = open_descriptors();
	memset(q.program, 'x', sizeof(q.program)); /* without an end */
	server.outside = note;
	send_raw(&q, sizeof(q), &pair[1], 1);
	tap(guise_server_request(&server) == -ENOMSG && !answer_on(pair[0], &r, &fds) &&
		    r.served == GUISE_JOIN_DONE,
	    "a program on the host's stack is noted, and that is answered");
	tap(noted.why == GUISE_OUTSIDE_GO && strlen(noted.program) == sizeof(q.program) - 1,
	    "... with its name, which has an end");
	tap(!server.members && server.refused == refused && open_descriptors() == open_before,
	    "... nobody joins, and no descriptor is left open");
	refuses("half a note", &q, sizeof(q) / 2, &pair[1], 1, pair[0], "not a request");
	refuses("a note without a channel", &q, sizeof(q), NULL, 0, -1, "");
	server.outside = NULL;
	server.refused = refused;
	close(pair[0]);
	close(pair[1]);
}

static void refusals(void)
{
	struct guise_join_request q = { .magic = GUISE_JOIN_MAGIC, .abi = GUISE_ABI };
	char big[4096] = "";
	int pair[2], pipes[2], many[8], fds;
	struct guise_join_reply r;

	channel(pair);
	for (int i = 0; i < 8; i++)
		many[i] = pair[1];
	if (pipe2(pipes, O_CLOEXEC))
		abort();
	refuses("an empty message", "", 0, NULL, 0, -1, "");
	refuses("a byte", "x", 1, NULL, 0, -1, "");
	refuses("a page", big, sizeof(big), &pair[1], 1, pair[0], "not a request");
	refuses("a request without a channel", &q, sizeof(q), NULL, 0, -1, "");
	refuses("a request with eight", &q, sizeof(q), many, 8, pair[0], "8 descriptors");
	refuses("a pipe for a channel", &q, sizeof(q), &pipes[1], 1, -1, "");
	q.abi += 7;
	refuses("another version", &q, sizeof(q), &pair[1], 1, pair[0], "another version");
	q.abi -= 7;
	holder.region->dead = 1;
	refuses("a lost stack's joiner", &q, sizeof(q), &pair[1], 1, pair[0], "is lost");
	holder.region->dead = 0;

	/* A channel that the parent made, sent by a child. */
	if (!fork()) {
		send_raw(&q, sizeof(q), &pair[1], 1);
		_exit(0);
	}
	wait(NULL);
	tap(guise_server_request(&server) == -EPERM && answer_on(pair[0], &r, &fds) == -EPERM,
	    "a channel that another process made is refused");

	for (int i = 0; i < GUISE_MAX_PROCS; i++)
		holder.region->procs[i].used = 1;
	refuses("one process too many", &q, sizeof(q), &pair[1], 1, pair[0], "1022 processes");
	holder.region->procs[3].used = 0;
	close(pair[0]);
	close(pair[1]);

	/* The joiner has died before it is answered. */
	channel(pair);
	send_raw(&q, sizeof(q), &pair[1], 1);
	close(pair[1]);
	close(pair[0]);
	tap(guise_server_request(&server) < 0 && !holder.region->procs[3].used && !server.members,
	    "a joiner that is gone before the answer keeps no place");
	close(pipes[0]);
	close(pipes[1]);
}

/* The joiner's side, in a child, against this holder. */
static void joins(void)
{
	struct pollfd p = { .fd = server.ticket, .events = POLLIN };
	int status, proc = -1, err = 0;
	pid_t child;

	child = fork();
	if (!child) {
		char number[16];

		snprintf(number, sizeof(number), "%d", ticket);
		setenv("GUISE_STACK", number, 1);
		if (!guise_join(-1, &err) && err == -EINVAL &&
		    strstr(guise_error(), "not a guise region"))
			_exit(0);
		printf("# %d: %s\n", err, guise_error());
		_exit(1);
	}
	if (poll(&p, 1, 20000) == 1)
		proc = guise_server_request(&server);
	if (!tap(proc >= 0, "guise_join() finds the ticket in $GUISE_STACK and asks"))
		return;
	tap(holder.region->procs[proc].pid == child, "the kernel says which process it is");
	tap(waitpid(child, &status, 0) == child && !status,
	    "it takes the answer, and says that this is no region");
	tap(!guise_server_hear(&server, (unsigned int)proc), "and the holder sees it leave");
	guise_server_gone(&server, (unsigned int)proc);

	unsetenv("GUISE_STACK");
	tap(!guise_join(-1, &err) && err == -ENOENT && strstr(guise_error(), "guise run"),
	    "without a ticket: a sentence");
	tap(!guise_join(holder.image_fd, &err) && err == -ENOTSOCK &&
		    strstr(guise_error(), "not a ticket"),
	    "with something that is none: a sentence");
	tap(!guise_join(9999, &err) && err == -EBADF, "with nothing: a sentence");
}

static void ends(void)
{
	int err = 0;

	close(ticket);
	tap(guise_server_request(&server) == -EPIPE && server.ticket < 0,
	    "the last copy of the ticket is closed: the holder is told");
	tap(guise_server_request(&server) == -EPIPE, "and stays told");
	guise_server_end(&server);

	/* A ticket whose holder is gone. */
	int pair[2];

	channel(pair);
	close(pair[1]);
	tap(!guise_join(pair[0], &err) && err == -ENETDOWN &&
		    strstr(guise_error(), "holder is gone"),
	    "to join a holder that is gone: a sentence");
	close(pair[0]);
}

/* Slots 1 to 5 wait, as follower of each other or as leader (5); 2 and 4 to 6
 * are of the process that dies, 6 works in its program. */
static void buries(void)
{
	struct guise_region *r = holder.region;
	struct guise_slot *slot = holder.slots;

	memset(slot, 0, GUISE_MAX_SLOTS * sizeof(*slot));
	for (uint32_t i = 1; i <= 6; i++) {
		slot[i].id = i;
		slot[i].task = i;
		slot[i].waiting = i < 6;
		slot[i].proc = i == 1 || i == 3 ? 1 : 7;
		slot[i].used = slot[i].proc + 1;
		slot[i].follows = i < 5;
		slot[i].wait_prev = i < 5 ? i - 1 : 0;
		slot[i].wait_next = i < 4 ? i + 1 : 0;
	}
	r->vcpu->wait_head = 1;
	r->vcpu->leader = 5;
	r->online = 1;
	r->vcpu->starving = 3;
	slot[2].belled = slot[3].belled = 1;
	r->vcpu->bell[0].pending = 2;
	r->vcpu->lock = 3 | GUISE_LOCK_CONTENDED;

	guise_bury(&holder, 7);
	guise_bury_pending(&holder);
	tap(!r->dead && r->procs[7].dead, "a process dies that waits in the stack");
	tap(r->vcpu->wait_head == 1 && slot[1].wait_next == 3 && slot[3].wait_prev == 1 &&
		    !slot[3].wait_next,
	    "the living follow each other");
	tap(!r->vcpu->leader && !r->vcpu->starving, "nobody leads, nobody starves");
	tap(r->vcpu->bell[0].pending == 1 && !slot[2].belled && slot[3].belled,
	    "its bell is taken back");
	tap(!r->online, "what it had running counts no more");

	r->vcpu->lock = 6 | GUISE_LOCK_CONTENDED;
	guise_bury(&holder, 1);
	tap(!r->dead, "another dies while a dead one's thread seems to own the virtual CPU");
	guise_bury(&holder, 7);
	tap(!r->dead && !r->vcpu->lock,
	    "that one dies outside: the virtual CPU is given up for it");
	r->vcpu->lock = 6 | GUISE_LOCK_CONTENDED;
	r->vcpu->entered = 1;
	guise_bury(&holder, 7);
	tap(r->dead, "inside, its death is the stack's");
}

int main(void)
{
	judge();
	make_holder();
	admits();
	expects();
	notes();
	refusals();
	joins();
	buries();
	ends();
	return tap_end();
}
