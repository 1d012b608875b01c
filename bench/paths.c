// SPDX-License-Identifier: GPL-2.0-only
/*
 * One connection of Multipath TCP over two paths, between two stacks of guise, or between two
 * namespaces of the host.
 *
 *	near ── a0 ─ bridge with netem ─ b0 ── far
 *	     ── a1 ─ bridge with netem ─ b1 ──
 *
 * The paths are a third stack of guise, as `guise path` makes it, the same for both sides of the
 * comparison. Stacks of guise are joined to it by streams, namespaces by taps.
 *
 * The near end sends. The far end measures what arrives in RUN_SECONDS, after WARM_SECONDS in which
 * the second subflow joins and both find their rate, and sends the figure back: a part of what the
 * paths would carry at the same time if each packet were a full segment of plain TCP. A segment of
 * Multipath TCP has 28 bytes less, which is 0.98. What waited for a packet of the other path when
 * the time began, or ended, makes a difference of some packets: a run may have a little more.
 */
#include "paths.h"

#include "holder.h"
#include "wire.h"
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT         5201
#define WARM_SECONDS 2
#define RUN_SECONDS  5
#define RATE_MBIT    20.0 /* of each path and direction */
#define SHAPE        "netem delay 10ms rate 20mbit limit 200"
#define SEGMENT      1448.0 /* bytes of payload, of 1514 of a frame */
#define FRAME        1514.0

#define NEAR_0 "198.18.1.1"
#define NEAR_1 "198.18.2.1"
#define FAR_0  "198.18.1.2"
#define FAR_1  "198.18.2.2"

static const char *const interfaces[] = { "a0", "a1", "b0", "b1" };
#define ENDS 4

static const char near_plan[] = "address eth0 " NEAR_0 "/24\nup eth0\n"
				"address eth1 " NEAR_1 "/24\nup eth1\n"
				"route default via " FAR_1 " dev eth1\n"
				"mptcp endpoint " NEAR_1 " dev eth1 subflow\n";
static const char far_plan[] = "address eth0 " FAR_0 "/24\nup eth0\n"
			       "address eth1 " FAR_1 "/24\nup eth1\n";

struct paths {
	int path[ENDS];  /* what the paths' stack has of each end: a tap or a stream */
	int stack[ENDS]; /* what a stack of guise has of it; -1: it is a tap */
	int near, far;   /* namespaces; -1: stacks of guise */
	struct holder between, at_near, at_far;
	pid_t server;
};

/* ---- the ends ------------------------------------------------------------------------- */

/* In this process's namespace. */
static int configure(const char *commands)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execlp("sh", "sh", "-c", commands, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return status ? -EIO : 0;
}

/* In a new namespace, with both taps of that end. Wire.c does not know how to set up endpoints of
 * MPTCP, so iproute2 does all. */
static int make_namespace(struct paths *p, int first, int *netns, const char *commands)
{
	int err = wire_new_namespace(netns);

	for (int i = first; i < first + 2 && !err; i++)
		err = wire_tap(interfaces[i], &p->path[i]);
	return err ? err : configure(commands);
}

static int make_namespaces(struct paths *p)
{
	static const char near[] = "ip address add " NEAR_0 "/24 dev a0 && ip link set a0 up && "
				   "ip address add " NEAR_1 "/24 dev a1 && ip link set a1 up && "
				   "ip route add default via " FAR_1 " dev a1 && "
				   "ip mptcp endpoint add " NEAR_1 " dev a1 subflow";
	static const char far[] = "ip address add " FAR_0 "/24 dev b0 && ip link set b0 up && "
				  "ip address add " FAR_1 "/24 dev b1 && ip link set b1 up";
	int home = wire_own_namespace(), err;

	if (home < 0)
		return -errno;
	err = make_namespace(p, 2, &p->far, far);
	if (!err)
		err = make_namespace(p, 0, &p->near, near);
	if (setns(home, CLONE_NEWNET))
		die(-errno, "cannot return to this process's network namespace");
	close(home);
	return err;
}

static int make_streams(struct paths *p)
{
	for (int i = 0; i < ENDS; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
			return -errno;
		p->path[i] = pair[0];
		p->stack[i] = pair[1];
	}
	return 0;
}

/* ---- the stacks -------------------------------------------------------------------------- */

static bool start(struct holder *h, const char *plan, const int *fds, int n, char *why, size_t size)
{
	char program[4200];

	snprintf(program, sizeof(program), "%sguise-holder", programs);
	return holder_start(h, program, plan, fds, n, why, size);
}

static bool start_paths(struct paths *p, char *why, size_t size)
{
	const char *kind = p->near >= 0 ? "tap" : "stream";
	char plan[1024] = "name paths\nmemory 64M\n";

	for (int i = 0; i < ENDS; i++)
		snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan),
			 "link %s %s fd=%d offload=off\n", interfaces[i], kind, p->path[i]);
	strcat(plan, "bridge br0 a0 b0\nbridge br1 a1 b1\nup br0\nup br1\n");
	for (int i = 0; i < ENDS; i++)
		snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan),
			 "qdisc %s " SHAPE "\nup %s\n", interfaces[i], interfaces[i]);
	return start(&p->between, plan, p->path, ENDS, why, size);
}

static bool start_end(struct holder *h, const int *fds, const char *rest, char *why, size_t size)
{
	char plan[512];

	snprintf(plan, sizeof(plan),
		 "name bench\nlink eth0 stream fd=%d\nlink eth1 stream fd=%d\n%s", fds[0], fds[1],
		 rest);
	return start(h, plan, fds, 2, why, size);
}

/* ---- both ends of the connection ------------------------------------------------------------ */

/* What arrives while it is measured, as a part. */
static double receive(int fd)
{
	static char buf[1 << 16];
	uint64_t from = now_ns() + WARM_SECONDS * 1000000000ull, start = 0, now = 0, bytes = 0;

	while (now < from + RUN_SECONDS * 1000000000ull) {
		ssize_t n = must(net.read(fd, buf, sizeof(buf)));

		if (!n)
			die(0, "the near end ended before all was measured");
		now = now_ns();
		if (start)
			bytes += (uint64_t)n;
		else if (now >= from)
			start = now;
	}
	return (double)bytes * 8e3 / (double)(now - start) / (2 * RATE_MBIT * SEGMENT / FRAME);
}

static __attribute__((noreturn)) void serve(const struct paths *p, int ready)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	static char rest[1 << 16];
	char number[16];
	double part;
	int fd, conn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (p->far >= 0) {
		if (setns(p->far, CLONE_NEWNET))
			die(-errno, "setns");
		calls_begin(WAY_HOST);
	} else {
		snprintf(number, sizeof(number), "%d", p->at_far.ticket);
		setenv("GUISE_STACK", number, 1);
		calls_begin(WAY_API);
	}
	fd = must(net.mptcp());
	must(net.bind(fd, &any));
	must(net.listen(fd));
	if (write(ready, "x", 1) != 1)
		die(-errno, "write to a pipe");
	conn = must(net.accept(fd));
	part = receive(conn);
	must(net.write(conn, &part, sizeof(part)));
	/* Until the near end has it, and ends. */
	while (net.read(conn, rest, sizeof(rest)) > 0)
		;
	_exit(0);
}

static bool start_server(struct paths *p, char *why, size_t size)
{
	char byte;
	int ready[2];
	bool good;

	if (pipe2(ready, O_CLOEXEC)) {
		snprintf(why, size, "pipe: %s", strerror(errno));
		return false;
	}
	p->server = fork();
	if (!p->server)
		serve(p, ready[1]);
	close(ready[1]);
	good = p->server > 0 && read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (!good)
		snprintf(why, size, "the far end did not start: its message is above");
	return good;
}

double two_paths(enum way way)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	static const char buf[1 << 16];
	double part;
	ssize_t n;
	int fd;

	inet_pton(AF_INET, FAR_0, &to.sin_addr);
	calls_begin(way);
	fd = must(net.mptcp());
	tune(fd);
	must(net.connect(fd, &to));
	do {
		must(net.write(fd, buf, sizeof(buf)));
		n = net.recv(fd, &part, sizeof(part), MSG_DONTWAIT);
	} while (n == -EAGAIN);
	if (must(n) != sizeof(part))
		die(0, "the far end ended without a figure");
	return part;
}

/* ---- a run -------------------------------------------------------------------------- */

static bool start_all(struct paths *p, enum way way, char *why, size_t size)
{
	int err = way == WAY_HOST ? make_namespaces(p) : make_streams(p);

	if (err) {
		snprintf(why, size, "no two paths between %s: %s%s",
			 way == WAY_HOST ? "namespaces" : "stacks", strerror(-err),
			 err == -EIO ? " (ip says above what failed)" : "");
		return false;
	}
	if (!start_paths(p, why, size))
		return false;
	if (way != WAY_HOST && (!start_end(&p->at_near, p->stack, near_plan, why, size) ||
				!start_end(&p->at_far, p->stack + 2, far_plan, why, size)))
		return false;
	return start_server(p, why, size);
}

static void stop_all(struct paths *p)
{
	struct holder *const holders[] = { &p->at_near, &p->at_far, &p->between };

	if (p->server > 0) {
		kill(p->server, SIGKILL);
		waitpid(p->server, NULL, 0);
	}
	for (int i = 0; i < 3; i++)
		if (holders[i]->ticket >= 0)
			holder_stop(holders[i]);
	for (int i = 0; i < ENDS; i++) {
		close(p->path[i]);
		close(p->stack[i]);
	}
	close(p->near);
	close(p->far);
}

bool paths_measure(const struct benchmark *b, enum way way, double *value, char *why, size_t size)
{
	const struct holder none = { .pid = -1, .ticket = -1, .status = -1 };
	struct paths p = {
		.path = { -1, -1, -1, -1 },
		.stack = { -1, -1, -1, -1 },
		.near = -1,
		.far = -1,
		.between = none,
		.at_near = none,
		.at_far = none,
		.server = -1,
	};
	struct worker w;
	bool good = start_all(&p, way, why, size) &&
		    worker_start(&w, b, way, p.at_near.ticket, p.near, why, size);

	if (good) {
		good = worker_result(&w, value, why, size);
		worker_stop(&w);
	}
	stop_all(&p);
	return good;
}

void paths_host(char *why, size_t size)
{
	why[0] = '\0';
	if (access("/proc/sys/net/mptcp/enabled", F_OK))
		snprintf(why, size, "the host's kernel has no MPTCP");
	else if (geteuid())
		snprintf(why, size, "needs root, to make network namespaces");
}
