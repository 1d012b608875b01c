// SPDX-License-Identifier: GPL-2.0-only
/*
 * The follower: a program of the plan ("follow PROGRAM fd=CONFIG fd=REPORT [fd=OPENER]") that the
 * warden keeps running beside the stack. It watches the host's interfaces, and has the carrier
 * change the stack after them, over the control socket as any client.
 *
 * It is the warden's child, with the warden's rights: it opens devices and asks for addresses, for
 * which the carrier has no rights. It ends with the warden, and before anything is undone: when the
 * carrier has gone it gives back what networks have lent it, for END_NS at most, and is killed. If
 * it ends otherwise it is started again, after a pause that grows while it keeps ending; with exit
 * status 0 it has ended for good.
 *
 * Its descriptors: 0 /dev/null; 1 and 2 the warden's stderr; 3 CONFIG; 4 a channel to the warden; 5
 * REPORT, for what it says to the command line, the first time only; 6 OPENER, a connection to what
 * opens uplinks for a user without rights, if there is one.
 *
 * What must outlive it and vanish with the stack it hands over on that channel: a message is the
 * number of a slot, and the descriptors that the warden is to keep open in that slot from then on,
 * in place of those that it had there. The warden does nothing else with them, and answers nothing.
 *
 * Limits: SLOTS slots of SLOT_FDS descriptors. A message that is anything else is dropped, and its
 * descriptors are closed.
 */
#include "holder/warden/follower.h"

#include "holder/control/control.h"
#include "holder/plan.h"

#include "host/message.h"
#include "host/sys.h"
#include "region/vcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS    32
#define SLOT_FDS 8
#define TURN     64 /* messages */

#define END_NS        2000000000ull /* to give addresses back to networks */
#define PAUSE_NS      1000000000ull
#define PAUSE_MOST_NS (60 * PAUSE_NS)
#define WELL_NS       PAUSE_MOST_NS /* one that lived so long is started again at once */

static struct {
	const char *program, *path;
	int config, report, opener;
	pid_t pid;   /* 0: none runs */
	int channel; /* -1: none */
	uint64_t due, started, pause;
	bool over; /* it is not started again */
	int held[SLOTS][SLOT_FDS];
	unsigned int n_held[SLOTS];
} f = { .channel = -1, .over = true };

void follower_descriptors(const struct plan *p, int fd[FOLLOWER_FDS])
{
	fd[0] = p->follow.program ? p->follow.config : -1;
	fd[1] = p->follow.program ? p->follow.report : -1;
	fd[2] = p->follow.program ? p->follow.opener : -1;
}

void follower_begin(const struct plan *p)
{
	if (!p->follow.program)
		return;
	f.program = p->follow.program;
	f.path = control_path(p->control);
	f.config = p->follow.config;
	f.report = p->follow.report;
	f.opener = p->follow.opener;
	f.pause = PAUSE_NS;
	f.over = false;
	f.due = guise_host_now();
}

static void drop(unsigned int slot)
{
	while (f.n_held[slot])
		close(f.held[slot][--f.n_held[slot]]);
}

/* ---- its start ------------------------------------------------------------------------------ */

/* In the child. Numbers below 7 may be in use by what is to be moved. */
static void become(int channel)
{
	int from[] = { open("/dev/null", O_RDWR), f.config, channel, f.report, f.opener };
	static const int to[] = { 0, 3, 4, 5, 6 };
	pid_t warden = getppid();
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != warden)
		_exit(1);
	for (size_t i = 3; i < sizeof(from) / sizeof(*from); i++)
		if (from[i] < 0)
			from[i] = from[0];
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		from[i] = fcntl(from[i], F_DUPFD, 16);
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		dup2(from[i], to[i]);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (close_range(7, ~0u, 0))
		for (int fd = 7; fd < 65536; fd++)
			close(fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	unsetenv("LD_PRELOAD");
	unsetenv("GUISE_STACK");
	execl(f.program, f.program, "follow-uplinks", f.path, (char *)NULL);
	fprintf(stderr, "guise-holder: cannot start %s: %s\n", f.program, strerror(errno));
	_exit(0);
}

static void start(void)
{
	int pair[2];

	f.due = guise_host_now() + f.pause;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	f.pid = fork();
	if (!f.pid)
		become(pair[1]);
	close(pair[1]);
	if (f.pid < 0) {
		f.pid = 0;
		close(pair[0]);
		return;
	}
	f.channel = pair[0];
	f.started = guise_host_now();
	if (f.report >= 0)
		close(f.report);
	f.report = -1;
}

/* ---- what it hands over ---------------------------------------------------------------------- */

/* False: it has hung up. */
static bool take(void)
{
	struct guise_message m;
	uint32_t slot = SLOTS;
	long n = guise_message_receive(f.channel, &slot, sizeof(slot), &m);

	if (n == -EAGAIN || n == -EINTR || n == -EMFILE || n == -ENFILE || n == -ENOMEM ||
	    n == -ENOBUFS)
		return true;
	if (n <= 0)
		return false;
	if (n != sizeof(slot) || slot >= SLOTS || m.fds > SLOT_FDS) {
		guise_message_close(&m);
		return true;
	}
	drop(slot);
	memcpy(f.held[slot], m.fd, m.fds * sizeof(*m.fd));
	f.n_held[slot] = m.fds;
	return true;
}

void follower_turn(void)
{
	struct pollfd p = { .fd = f.channel, .events = POLLIN };

	if (!f.over && !f.pid && guise_host_now() >= f.due)
		start();
	for (int i = 0; i < TURN && f.channel >= 0; i++) {
		p.fd = f.channel;
		if (poll(&p, 1, 0) <= 0)
			break;
		if (!take()) {
			close(f.channel);
			f.channel = -1;
		}
	}
}

int follower_channel(void)
{
	return f.channel;
}

long follower_patience(void)
{
	uint64_t now;

	if (f.over || f.pid)
		return -1;
	now = guise_host_now();
	return now < f.due ? (long)(f.due - now) : 0;
}

/* ---- its end ----------------------------------------------------------------------------- */

void follower_ended(pid_t pid, int how)
{
	const uint64_t now = guise_host_now();

	if (!f.pid || pid != f.pid)
		return;
	follower_turn(); /* what it handed over last */
	f.pid = 0;
	if (f.channel >= 0)
		close(f.channel);
	f.channel = -1;
	if (f.over)
		return;
	if (WIFEXITED(how) && !WEXITSTATUS(how)) {
		f.over = true;
		return;
	}
	if (now - f.started >= WELL_NS)
		f.pause = PAUSE_NS;
	f.due = now + f.pause;
	fprintf(stderr,
		"guise-holder: the process that follows the host's interfaces, %d, %s %d; it is "
		"started again\n",
		(int)pid, WIFSIGNALED(how) ? "was killed by signal" : "ended with status",
		WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
	f.pause = f.pause * 2 < PAUSE_MOST_NS ? f.pause * 2 : PAUSE_MOST_NS;
}

/* The carrier has ended: the follower sees that, and ends by itself. */
static bool ends_by_itself(void)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	uint64_t deadline = guise_host_now() + END_NS;

	while (!waitpid(f.pid, NULL, WNOHANG)) {
		if (guise_host_now() > deadline)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

void follower_end(void)
{
	f.over = true;
	if (f.pid && ends_by_itself())
		f.pid = 0;
	if (f.pid) {
		kill(f.pid, SIGKILL);
		while (waitpid(f.pid, NULL, 0) < 0 && errno == EINTR)
			;
		f.pid = 0;
	}
	if (f.channel >= 0)
		close(f.channel);
	f.channel = -1;
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		drop(slot);
}
