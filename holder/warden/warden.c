// SPDX-License-Identifier: GPL-2.0-only
/*
 * The warden: the process that a stack is started as. It has the rights of whoever has started it,
 * and does little: it forks the carrier, which builds the stack, pumps, relays and parses, and has
 * no rights (isolation.c); does for it what takes rights (requests.c); traces the members
 * (tracer.c); and when the carrier has ended, however that came, undoes what was changed on the
 * host.
 *
 * It never maps a region, reads nothing that came over a network, and has one thread, which waits
 * in ppoll(2) for the carrier's requests and for signals: SIGCHLD for the carrier's end and for
 * stops of members, and those that end a stack, which it passes on.
 *
 * The end of a carrier has a deadline, which the carrier sets and moves: it waits for threads
 * of its own and for answers of the stack's kernel then, and one may not come: because of a fault
 * of ours, of a debugger that has stopped one thread, of a program that has spoilt the stack's
 * memory. After that it is killed. A warden that is killed takes its carrier with it; then the
 * next guise command undoes.
 */
#include "holder/warden/warden.h"

#include "holder/control/control.h"
#include "holder/plan.h"
#include "holder/warden/follower.h"
#include "holder/warden/requests.h"
#include "holder/warden/tracer.h"

#include "host/sys.h"
#include "region/vcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNDO_SECONDS 20 /* which waits for up to 10 s for another guise */
#define MOST_FDS     65536
#define KILL_NS      1000000000 /* for a process that was killed to end */

static const int ending[] = { SIGTERM, SIGINT, SIGHUP };
#define ENDINGS (sizeof(ending) / sizeof(*ending))

static volatile pid_t child; /* 0: it is waited for no more */

/* Runs only within a wait (ppoll), so that the child has not been waited for. */
static void pass_on(int sig)
{
	(void)sig;
	if (child)
		kill(child, SIGTERM);
}

static void wake(int sig)
{
	(void)sig;
}

void warden_begin(void)
{
	struct sigaction pass = { .sa_handler = pass_on }, woken = { .sa_handler = wake };
	struct rlimit limit;
	sigset_t set;

	/* Fails for the leader of a process group, such as under a shell; then
	 * Ctrl-C does reach us, and is meant for us. */
	setsid();
	signal(SIGPIPE, SIG_IGN);
	/* What a user lets programs write is not meant for stacks, as far as that may be raised. */
	signal(SIGXFSZ, SIG_IGN);
	if (!getrlimit(RLIMIT_FSIZE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGCHLD, &woken, NULL);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaction(ending[i], &pass, NULL);
}

/* ---- undoing ------------------------------------------------------------------------- */

/* Waits for a child to end; one that takes too long is killed. */
static bool await(pid_t pid, int *how)
{
	const uint64_t until = guise_host_now() + UNDO_SECONDS * 1000000000ull;
	const struct timespec look = { 0, 5000000 };
	pid_t got;

	while (!(got = waitpid(pid, how, WNOHANG)) || (got < 0 && errno == EINTR)) {
		if (guise_host_now() > until)
			kill(pid, SIGKILL);
		nanosleep(&look, NULL);
	}
	return got == pid;
}

/* The program gets none of our signals, and no descriptor of ours. */
bool warden_undo(const struct plan *p)
{
	int how;
	pid_t pid;

	if (!p->undo_program)
		return true;
	pid = fork();
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		unsetenv("LD_PRELOAD");
		unsetenv("GUISE_STACK");
		execl(p->undo_program, p->undo_program, "undo", p->undo_journal, (char *)NULL);
		_exit(127);
	}
	if (pid > 0 && await(pid, &how) && WIFEXITED(how) && !WEXITSTATUS(how))
		return true;
	fprintf(stderr, "guise-holder: \"%s undo %s\" failed; run it again to clean up the host\n",
		p->undo_program, p->undo_journal);
	return false;
}

/* ---- the carrier ------------------------------------------------------------------------ */

/* In the carrier: what only the warden is to have. */
static int begin_carrier(int (*carry)(void *, const struct carrier *), void *arg, struct carrier *c)
{
	sigset_t set;

	prctl(PR_SET_NAME, "guise-carrier", 0, 0, 0);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return carry(arg, c);
}

/*
 * All that belongs to the stack is the carrier's alone: it is closed when that closes it. What the
 * plan has the warden hold is the warden's alone, and closed when that ends.
 */
static void close_all_but(const int *kept, int n)
{
	struct rlimit limit = { MOST_FDS, MOST_FDS };
	int low = 3;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > MOST_FDS)
		limit.rlim_cur = MOST_FDS;
	for (;;) {
		int next = (int)limit.rlim_cur;

		for (int i = 0; i < n; i++)
			if (kept[i] >= low && kept[i] < next)
				next = kept[i];
		if (next > low && close_range((unsigned int)low, (unsigned int)next - 1, 0))
			for (int fd = low; fd < next; fd++)
				close(fd);
		if (next == (int)limit.rlim_cur)
			return;
		low = next + 1;
	}
}

/* How long there is nothing to do at the most: -1 for ever, in nanoseconds. */
static long patience(const struct requests *r)
{
	long ns = tracer_patience(), follower = r->listens ? follower_patience() : -1;
	uint64_t now;

	if (follower >= 0 && (ns < 0 || follower < ns))
		ns = follower;

	if (r->deadline) {
		now = guise_host_now();
		if (now >= r->deadline)
			return 0;
		if (ns < 0 || (long)(r->deadline - now) < ns)
			ns = (long)(r->deadline - now);
	}
	return ns;
}

/* What the carrier ended with; it is killed when its time is over. */
static int serve(struct requests *r, pid_t pid, bool *killed)
{
	sigset_t waking;
	int how = 0;

	sigprocmask(SIG_BLOCK, NULL, &waking);
	sigdelset(&waking, SIGCHLD);
	for (size_t i = 0; i < ENDINGS; i++)
		sigdelset(&waking, ending[i]);
	*killed = false;
	while (!tracer_turn(pid, &how)) {
		struct pollfd p[] = {
			{ .fd = r->channel, .events = POLLIN },
			{ .fd = follower_channel(), .events = POLLIN },
		};
		const long ns = patience(r);
		const struct timespec left = { ns / 1000000000, ns % 1000000000 };

		/* A channel that has hung up is not polled: the end is still to come. */
		if (ppoll(p, 2, ns < 0 ? NULL : &left, &waking) > 0 && p[0].revents &&
		    !requests_answer(r))
			r->channel = -1;
		if (r->listens)
			follower_turn();
		if (r->deadline && guise_host_now() >= r->deadline) {
			/* While a debugger holds one of its threads it is not reported. */
			if (*killed)
				break;
			r->deadline = guise_host_now() + KILL_NS;
			fprintf(stderr, "guise-holder: the stack's end takes too long; it is ended "
					"by force\n");
			*killed = true;
			kill(pid, SIGKILL);
		}
	}
	child = 0;
	follower_end();
	if (WIFSIGNALED(how) && !*killed)
		fprintf(stderr,
			"guise-holder: the stack's carrier, process %d, was killed by signal %d; "
			"the stack is lost\n",
			(int)pid, WTERMSIG(how));
	return how;
}

static bool make_channels(int pair[2][2])
{
	for (int i = 0; i < 2; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair[i]))
			return false;
	return true;
}

bool warden(const struct plan *p, const struct isolation_user *user, int status,
	    int (*carry)(void *arg, const struct carrier *c), void *arg)
{
	const int guests = plan_guests(p);
	struct requests r = {
		.user = *user,
		.listener = control_listener(p->control),
	};
	struct carrier c;
	struct stat st;
	bool killed;
	int pair[2][2], how, kept[4 + FOLLOWER_FDS + PLAN_HELD], n = 0;
	pid_t pid;

	/* Where they cannot be read, nobody has them. */
	if (user->uid == geteuid())
		guise_rights_read(0, &r.rights);
	else
		guise_rights_as(&r.rights, user->uid, user->gid, user->group, user->groups);
	if (guests >= 0 && !fstat(guests, &st))
		r.guests = st.st_ino;
	if (!make_channels(pair)) {
		fprintf(stderr, "guise-holder: no socket pair: %s\n", strerror(errno));
		return false;
	}
	pid = fork();
	if (!pid) {
		c = (struct carrier){ pair[0][1], pair[1][1] };
		close(pair[0][0]);
		close(pair[1][0]);
		follower_descriptors(p, kept);
		for (int i = 0; i < FOLLOWER_FDS; i++)
			if (kept[i] >= 0)
				close(kept[i]);
		for (int i = 0; i < p->n_held; i++)
			close(p->held[i]);
		_exit(begin_carrier(carry, arg, &c));
	}
	if (pid < 0) {
		fprintf(stderr, "guise-holder: no process for the carrier: %s\n", strerror(errno));
		return false;
	}
	child = pid;
	r.channel = pair[0][0];
	tracer_begin(pair[1][0], user);
	kept[n++] = status;
	kept[n++] = r.listener;
	kept[n++] = pair[0][0];
	kept[n++] = pair[1][0];
	for (int i = 0; i < p->n_held; i++) {
		fcntl(p->held[i], F_SETFD, FD_CLOEXEC);
		kept[n++] = p->held[i];
	}
	follower_descriptors(p, kept + n);
	close_all_but(kept, n + FOLLOWER_FDS);
	follower_begin(p);
	how = serve(&r, pid, &killed);
	return !killed && WIFEXITED(how) && !WEXITSTATUS(how);
}
