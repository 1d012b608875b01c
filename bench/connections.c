// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many connections: how many can be made and closed in a second, and how much memory
 * each takes while it is idle.
 *
 * The memory of 10,000 idle connections is counted in the pages of the stack's region,
 * the two programs' own memory, and the slabs of the host's kernel. So the host's
 * sockets and guise's placeholders are both counted. Slabs belong to the whole machine:
 * what other programs do at the same time changes the figure.
 */
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A port of a closed connection cannot be used again for a minute. The host has enough ports for
 * five runs of so many. */
#define CONNECTIONS 4000
#define IDLE        10000
#define SPARE       200 /* descriptors for other things than these connections */

static int connect_to(const struct sockaddr_in *a)
{
	int fd = must(net.socket(AF_INET, SOCK_STREAM));

	must(net.connect(fd, a));
	return fd;
}

static double a_second(int connections, uint64_t start)
{
	return connections * 1e9 / (double)(now_ns() - start);
}

/* One thread at both ends. */
double connections_lo(enum way way)
{
	struct sockaddr_in a;
	uint64_t start;
	int fd, near, far;

	calls_begin(way);
	fd = listener(&a);
	start = now_ns();
	for (int i = 0; i < CONNECTIONS; i++) {
		near = connect_to(&a);
		far = must(net.accept(fd));
		must(net.close(near));
		must(net.close(far));
	}
	return a_second(CONNECTIONS, start);
}

/* The far end closes each connection as soon as it has it. */
double connections_client(int control, struct sockaddr_in a)
{
	uint64_t start;
	char byte;
	int fd;

	if (must(net.read(control, &a.sin_port, sizeof(a.sin_port))) != sizeof(a.sin_port))
		die(0, "the far end did not begin");
	start = now_ns();
	for (int i = 0; i < CONNECTIONS; i++) {
		fd = connect_to(&a);
		if (must(net.read(fd, &byte, 1)))
			die(0, "a byte came where only the end was expected");
		must(net.close(fd));
	}
	return a_second(CONNECTIONS, start);
}

void connections_server(int control)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = must(net.socket(AF_INET, SOCK_STREAM));

	must(net.bind(fd, &a));
	must(net.listen(fd));
	must(net.getsockname(fd, &a));
	must(net.write(control, &a.sin_port, sizeof(a.sin_port)));
	for (;;) {
		int one = must(net.accept(fd));

		must(net.close(one));
	}
}

static void begin_with_many(enum way way)
{
	calls_begin(way);
	if (net.allow(IDLE + SPARE) < 0)
		die(0,
		    "%d idle connections need %d descriptors in each of two processes: see "
		    "ulimit -Hn",
		    IDLE, IDLE + SPARE);
}

/* The number after a name in a file of /proc, in kB. */
static long kb_of(const char *path, const char *name)
{
	size_t len = strlen(name);
	FILE *f = fopen(path, "re");
	char line[256];
	long kb = -1;

	if (!f)
		die(-errno, "%s", path);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len))
			kb = strtol(line + len, NULL, 10);
	fclose(f);
	if (kb < 0)
		die(0, "%s has no line %s", path, name);
	return kb;
}

/* How many pages of a shared mapping have memory, whichever process used them first. */
static long pages_of(char *from, const char *to)
{
	static unsigned char there[4096];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	long n = 0;

	for (; from < to; from += size) {
		size = (size_t)(to - from);
		if (size > sizeof(there) * page)
			size = sizeof(there) * page;
		if (mincore(from, size, there))
			die(-errno, "mincore");
		for (size_t i = 0; i < size / page; i++)
			n += there[i] & 1;
	}
	return n;
}

/* The pages of the stack's region; 0 if this process is on the host's stack. */
static long region_pages(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], shared;
	long n = 0;

	if (!f)
		die(-errno, "/proc/self/maps");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx rw%*c%c", &from, &to, &shared) == 3 && shared == 's' &&
		    strstr(line, "/memfd:guise"))
			n += pages_of((char *)from, (const char *)to);
	fclose(f);
	return n;
}

static double bytes_used(pid_t other)
{
	char path[64];
	long kb = kb_of("/proc/self/status", "RssAnon:") + kb_of("/proc/meminfo", "Slab:");

	snprintf(path, sizeof(path), "/proc/%d/status", other);
	kb += kb_of(path, "RssAnon:");
	return (double)kb * 1024 + (double)region_pages() * (double)sysconf(_SC_PAGESIZE);
}

/* Accepts connections and keeps them open. */
static __attribute__((noreturn)) void keeping_process(enum way way, int to)
{
	struct sockaddr_in a;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	begin_with_many(way);
	fd = listener(&a);
	if (write(to, &a, sizeof(a)) != sizeof(a))
		die(-errno, "write to a pipe");
	for (;;) {
		must(net.accept(fd));
		if (write(to, "x", 1) != 1)
			die(-errno, "write to a pipe");
	}
}

static void connect_and_keep(const struct sockaddr_in *a, int taken)
{
	char byte;

	connect_to(a);
	if (read(taken, &byte, 1) != 1)
		die(0, "the second process failed");
}

double connections_idle(enum way way)
{
	struct sockaddr_in a;
	double before, after;
	pid_t pid;
	int p[2];

	if (pipe(p))
		die(-errno, "pipe");
	pid = fork();
	if (pid < 0)
		die(-errno, "fork");
	if (!pid)
		keeping_process(way, p[1]);
	close(p[1]);
	begin_with_many(way);
	if (read(p[0], &a, sizeof(a)) != sizeof(a))
		die(0, "the second process did not begin");
	connect_and_keep(&a, p[0]); /* so that memory which all connections share is not counted */
	before = bytes_used(pid);
	for (int i = 0; i < IDLE; i++)
		connect_and_keep(&a, p[0]);
	after = bytes_used(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return (after - before) / IDLE;
}
