// SPDX-License-Identifier: GPL-2.0-only
/*
 * One TCP connection over 127.0.0.1: round trips of one byte, and bulk.
 *
 * The two ends are in one thread, in two threads of one process, or in two processes.
 * One thread never waits, so that its figure is the cost of the protocol alone. With
 * two threads, most of the cost is to wake the other one.
 *
 * The second process is forked before either has used the network. So they are like
 * any two programs on one stack.
 */
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE      65536
#define BULK_WARM  (32ull << 20)
#define BULK_BYTES (512ull << 20)

static char piece[PIECE];

/* ---- the two sides of a connection ------------------------------------------ */

static void rr_step(int fd)
{
	char byte = 'x';

	if (must(net.write(fd, &byte, 1)) != 1 || must(net.read(fd, &byte, 1)) != 1)
		die(0, "the connection ended early");
}

double rr_client(int fd)
{
	return ns_per_step(rr_step, fd, 16) / 1000;
}

void rr_server(int fd)
{
	char byte;

	/* Only the client reports failures: this side may see a reset at the end. */
	while (net.read(fd, &byte, 1) == 1)
		must(net.write(fd, &byte, 1));
}

static void send_all(int fd, uint64_t bytes)
{
	while (bytes)
		bytes -= (uint64_t)must(net.write(fd, piece, bytes < PIECE ? bytes : PIECE));
}

/* Ends when the other side reports that it has received everything. */
double bulk_client(int fd, uint64_t bytes)
{
	uint64_t start;
	char byte;

	send_all(fd, BULK_WARM);
	must(net.read(fd, &byte, 1));
	start = now_ns();
	send_all(fd, bytes);
	if (must(net.read(fd, &byte, 1)) != 1)
		die(0, "the connection ended early");
	return (double)bytes * 8 / (double)(now_ns() - start);
}

void bulk_server(int fd, uint64_t bytes)
{
	static char buf[PIECE];
	const uint64_t rounds[] = { BULK_WARM, bytes };

	for (int i = 0; i < 2; i++) {
		for (uint64_t left = rounds[i]; left;) {
			ssize_t n = must(net.read(fd, buf, left < PIECE ? left : PIECE));

			if (!n)
				die(0, "the connection ended early");
			left -= (uint64_t)n;
		}
		must(net.write(fd, "x", 1));
	}
}

/* ---- making the connection ---------------------------------------------------- */

int listener(struct sockaddr_in *a)
{
	int fd = must(net.socket(AF_INET, SOCK_STREAM));

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(net.bind(fd, a));
	must(net.listen(fd));
	must(net.getsockname(fd, a));
	return fd;
}

/* Both ends in this process. */
static void connect_pair(int *ends)
{
	struct sockaddr_in a;
	int fd = listener(&a);

	ends[0] = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.connect(ends[0], &a));
	ends[1] = must(net.accept(fd));
	must(net.close(fd));
	tune(ends[0]);
	tune(ends[1]);
}

struct server {
	void (*serve)(int fd);
	int fd;
};

static void *server_thread(void *arg)
{
	struct server *s = arg;

	s->serve(s->fd);
	return NULL;
}

static double with_thread(enum way way, double (*client)(int), void (*serve)(int))
{
	pthread_t thread;
	struct server s = { .serve = serve };
	double value;
	int ends[2];

	calls_begin(way);
	connect_pair(ends);
	s.fd = ends[1];
	must(-pthread_create(&thread, NULL, server_thread, &s));
	value = client(ends[0]);
	must(net.close(ends[0]));
	pthread_join(thread, NULL);
	return value;
}

static __attribute__((noreturn)) void server_process(enum way way, int to, void (*serve)(int))
{
	struct sockaddr_in a;
	int fd, conn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calls_begin(way);
	fd = listener(&a);
	if (write(to, &a, sizeof(a)) != sizeof(a))
		die(-errno, "write to a pipe");
	conn = must(net.accept(fd));
	tune(conn);
	serve(conn);
	_exit(0);
}

static double with_process(enum way way, double (*client)(int), void (*serve)(int))
{
	struct sockaddr_in a;
	double value;
	int p[2], fd, status;
	pid_t pid;

	if (pipe(p))
		die(-errno, "pipe");
	pid = fork();
	if (pid < 0)
		die(-errno, "fork");
	if (!pid)
		server_process(way, p[1], serve);
	close(p[1]);
	calls_begin(way);
	if (read(p[0], &a, sizeof(a)) != sizeof(a))
		die(0, "the second process did not begin");
	fd = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.connect(fd, &a));
	tune(fd);
	value = client(fd);
	must(net.close(fd));
	if (waitpid(pid, &status, 0) != pid || status)
		die(0, "the second process failed");
	return value;
}

/* ---- the workloads ------------------------------------------------------------ */

static int other_end;

static void rr_both_step(int fd)
{
	char byte = 'x';

	must(net.write(fd, &byte, 1));
	must(net.read(other_end, &byte, 1));
	must(net.write(other_end, &byte, 1));
	must(net.read(fd, &byte, 1));
}

double rr_1thread(enum way way)
{
	int ends[2];

	calls_begin(way);
	connect_pair(ends);
	other_end = ends[1];
	return ns_per_step(rr_both_step, ends[0], 16) / 1000;
}

/* Sends as much as fits, then receives as much as has come, until everything has. */
static void move(const int *ends, uint64_t bytes)
{
	static char buf[PIECE];
	uint64_t to_send = bytes;
	ssize_t n;

	while (bytes) {
		if (to_send) {
			n = net.send(ends[0], piece, to_send < PIECE ? to_send : PIECE,
				     MSG_DONTWAIT);
			if (n < 0 && n != -EAGAIN)
				die((int)n, "send");
			to_send -= n > 0 ? (uint64_t)n : 0;
		}
		n = net.recv(ends[1], buf, PIECE, MSG_DONTWAIT);
		if (n < 0 && n != -EAGAIN)
			die((int)n, "recv");
		bytes -= n > 0 ? (uint64_t)n : 0;
	}
}

double bulk_1thread(enum way way)
{
	uint64_t start;
	int ends[2];

	calls_begin(way);
	connect_pair(ends);
	move(ends, BULK_WARM);
	start = now_ns();
	move(ends, BULK_BYTES);
	return (double)BULK_BYTES * 8 / (double)(now_ns() - start);
}

static double lo_bulk_client(int fd)
{
	return bulk_client(fd, BULK_BYTES);
}

static void lo_bulk_server(int fd)
{
	bulk_server(fd, BULK_BYTES);
}

double rr_2threads(enum way way)
{
	return with_thread(way, rr_client, rr_server);
}

double rr_2procs(enum way way)
{
	return with_process(way, rr_client, rr_server);
}

double bulk_2threads(enum way way)
{
	return with_thread(way, lo_bulk_client, lo_bulk_server);
}

double bulk_2procs(enum way way)
{
	return with_process(way, lo_bulk_client, lo_bulk_server);
}
