// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-bench: compares a stack of guise with the host's.
 *
 * The runs of a benchmark alternate between guise and the host, so that other work of
 * the machine affects both. The medians and their ratio are reported.
 * docs/benchmarks.md says what each figure means.
 */
#include "benchmark.h"
#include "guest.h"
#include "paths.h"
#include "report.h"
#include "wire.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS     5
#define RUNS_MAX 99

#define LOOPBACK "boot\n"
#define SERVED   "served\nboot\n"
#define TAP      "address eth0 " WIRE_NEAR "/24\nup eth0\n"

const struct benchmark benchmarks[] = {
	{ "getppid", "ns", getppid_run, LOOPBACK, .api = true, .floor_of = RATIO_AT_MOST,
	  .floor = 0.5, .what = "the cheapest call" },
	{ "recv-eagain", "ns", recv_eagain_run, LOOPBACK,
	  .what = "recv on an empty UDP socket, non-blocking" },
	{ "socket-close", "ns", socket_close_run, LOOPBACK,
	  .what = "making a TCP socket and closing it" },
	{ "sockets-100", "ns", many_sockets_run, LOOPBACK,
	  .what = "the same, with a hundred made before the first is closed" },
	{ "host-call", "ns", host_call_run, LOOPBACK,
	  .what = "libc's getppid, a call of the host, in a program on a stack" },
	{ "raw-call", "ns", raw_call_run, LOOPBACK,
	  .what = "the same by an instruction of the program's own" },
	{ "hook-ns", "ns", host_read_run, LOOPBACK,
	  .what = "reading a byte of the host's /dev/zero: what the hook adds" },
	{ "create-ms", "ms", create_time, .no_host = true, .api = true, .floor_of = GUISE_AT_MOST,
	  .floor = 50, .what = "until a new stack has booted" },
	{ "create-mb", "MiB", create_memory, .no_host = true, .api = true,
	  .floor_of = GUISE_AT_MOST, .floor = 20, .what = "resident memory of a new stack" },
	{ "join-us", "us", join_time, LOOPBACK, .no_host = true, .api = true,
	  .floor_of = GUISE_AT_MOST, .floor = 1000,
	  .what = "until a process has joined a stack and made its first call" },
	{ "join", "us", join_program, LOOPBACK, .hooks = true,
	  .what = "until a new program has made a socket and ended" },
	{ "fork", "us", fork_time, LOOPBACK, .hooks = true,
	  .what = "until a child of a program with ten sockets has ended" },
	{ "nanosleep", "us", nanosleep_run, LOOPBACK, .api = true,
	  .what = "how long a sleep of 100 us takes" },

	{ "call-rate-1", "M/s", call_rate_1, LOOPBACK, .api = true,
	  .what = "getppid in one process" },
	{ "call-rate-2", "M/s", call_rate_2, LOOPBACK, .api = true,
	  .what = "... in two at the same time, together" },
	{ "call-rate-4", "M/s", call_rate_4, LOOPBACK, .api = true, .what = "... in four" },
	{ "call-rate-16", "M/s", call_rate_16, LOOPBACK, .api = true, .what = "... in sixteen" },

	{ "lo-rr-1thread", "us", rr_1thread, LOOPBACK, .floor_of = RATIO_AT_MOST, .floor = 0.6,
	  .what = "round trip of a byte over TCP on 127.0.0.1, one thread at both ends" },
	{ "lo-rr-2threads", "us", rr_2threads, LOOPBACK, .what = "... two threads" },
	{ "proc-rr", "us", rr_2procs, LOOPBACK, .floor_of = RATIO_AT_MOST, .floor = 0.8,
	  .what = "... two processes" },
	{ "lo-bulk-1thread", "Gbit/s", bulk_1thread, LOOPBACK, .floor_of = RATIO_AT_LEAST,
	  .floor = 1.2, .what = "512 MiB in writes of 64 KiB, one thread at both ends" },
	{ "lo-bulk-2threads", "Gbit/s", bulk_2threads, LOOPBACK, .what = "... two threads" },
	{ "proc-bulk", "Gbit/s", bulk_2procs, LOOPBACK, .floor_of = RATIO_AT_LEAST, .floor = 0.85,
	  .what = "... two processes" },

	{ "mixed-rr-1", "k/s", mixed_rr_1, LOOPBACK, .hooks = true, .floor_of = RATIO_AT_LEAST,
	  .floor = 1,
	  .what = "round trips of two processes that wait for a pipe of the host, too" },
	{ "mixed-rr-4", "k/s", mixed_rr_4, LOOPBACK, .hooks = true, .floor_of = RATIO_AT_LEAST,
	  .floor = 1, .what = "... of four pairs at the same time, together" },
	{ "mixed-rr-16", "k/s", mixed_rr_16, LOOPBACK, .hooks = true, .floor_of = RATIO_AT_LEAST,
	  .floor = 1, .what = "... of sixteen" },
	{ "mixed-rr-64", "k/s", mixed_rr_64, LOOPBACK, .hooks = true, .floor_of = RATIO_AT_LEAST,
	  .floor = 1, .what = "... of sixty-four" },

	{ "served-getppid", "ns", getppid_run, SERVED, .api = true,
	  .what = "the cheapest call, of a program that is served" },
	{ "served-rr", "us", rr_2procs, SERVED, .floor_of = RATIO_AT_MOST, .floor = 2,
	  .what = "round trip of a byte over TCP on 127.0.0.1, two processes that are served" },
	{ "served-bulk", "Gbit/s", bulk_2procs, SERVED, .floor_of = RATIO_AT_LEAST, .floor = 0.6,
	  .what = "... 512 MiB in writes of 64 KiB" },
	{ "served-connections", "/s", connections_lo, SERVED,
	  .what = "... connections made and closed, one thread at both ends" },

	{ "lo-rr-1thread-busy", "us", rr_1thread, LOOPBACK, .busy = true,
	  .what = "the same six, on two processors, beside a loop that keeps one busy" },
	{ "lo-rr-2threads-busy", "us", rr_2threads, LOOPBACK, .busy = true, .what = "..." },
	{ "proc-rr-busy", "us", rr_2procs, LOOPBACK, .busy = true, .what = "..." },
	{ "lo-bulk-1thread-busy", "Gbit/s", bulk_1thread, LOOPBACK, .busy = true, .what = "..." },
	{ "lo-bulk-2threads-busy", "Gbit/s", bulk_2threads, LOOPBACK, .busy = true, .what = "..." },
	{ "proc-bulk-busy", "Gbit/s", bulk_2procs, LOOPBACK, .busy = true, .what = "..." },

	{ "tap-rr", "us", wire_rr, TAP, wire_rr_server,
	  .what = "round trip of a byte to a server on the host; guise: tap, host: veth" },
	{ "tap-bulk", "Gbit/s", wire_bulk, TAP, wire_bulk_server,
	  .what = "128 MiB to a server on the host; guise: tap, host: veth" },
	{ "tun-rr", "us", guest_rr, NULL, wire_rr_server, .guest = true,
	  .what = "the same over a veth, for a program that cannot be preloaded" },
	{ "tun-bulk", "Gbit/s", guest_bulk, NULL, wire_bulk_server, .guest = true,
	  .what = "... 128 MiB; both are compared with pasta and slirp4netns, too" },
	{ "mptcp-two-paths", "part", two_paths, .paths = true, .floor_of = GUISE_AT_LEAST,
	  .floor = 0.95,
	  .what = "goodput over two paths of 20 Mbit/s, of what full TCP segments would carry" },
	{ "connections", "/s", connections_lo, LOOPBACK,
	  .what = "TCP connections made and closed on 127.0.0.1, one thread at both ends" },
	{ "accept-rate", "/s", accept_rate, LOOPBACK, .hooks = true,
	  .what = "... to a listener that two processes share, by two others" },
	{ "tap-connections", "/s", wire_connections, TAP, wire_connections_server,
	  .what = "... to a server on the host; guise: tap, host: veth" },
	{ "idle-10k", "B", connections_idle, LOOPBACK,
	  .what = "memory of each of 10,000 idle connections on 127.0.0.1, both ends" },
	{ "idle-wakeups", "/10s", idle_member, LOOPBACK, .no_host = true, .idle = true,
	  .floor_of = GUISE_AT_MOST, .floor = 19,
	  .what = "voluntary context switches of the holder and an idle program" },
};

const int benchmark_count = sizeof(benchmarks) / sizeof(benchmarks[0]);

char programs[4096];

static int usage(FILE *to)
{
	fprintf(to,
		"usage: guise bench [NAME...] [--json] [--runs N] [--api] [--list]\n"
		"\n"
		"Compares a stack of guise with this host's. Without NAME: all benchmarks.\n"
		"A NAME that ends in * stands for all names that begin so.\n"
		"  --json    print the results as JSON (docs/benchmarks.md)\n"
		"  --runs N  make N runs on each side, 1 to %d (default %d)\n"
		"  --api     call libguise directly, not through the preload library\n"
		"  --list    list the benchmarks\n",
		RUNS_MAX, RUNS);
	return to == stdout ? 0 : 2;
}

static int list(void)
{
	for (int i = 0; i < benchmark_count; i++)
		printf("%-22s %-7s %s\n", benchmarks[i].name, benchmarks[i].unit,
		       benchmarks[i].what);
	return 0;
}

static bool names(const char *pattern, const struct benchmark *b)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return !strncmp(pattern, b->name, len - 1);
	return !strcmp(pattern, b->name);
}

/* Marks the benchmarks that pattern stands for, and returns how many these are. */
static int choose(bool *chosen, const char *pattern)
{
	int n = 0;

	for (int i = 0; i < benchmark_count; i++)
		if (names(pattern, &benchmarks[i])) {
			chosen[i] = true;
			n++;
		}
	return n;
}

static bool find_programs(void)
{
	ssize_t n = readlink("/proc/self/exe", programs, sizeof(programs) - 1);
	char *slash;

	if (n <= 0)
		return false;
	programs[n] = '\0';
	slash = strrchr(programs, '/');
	slash[1] = '\0';
	return true;
}

static bool has_program(const char *name)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s%s", programs, name);
	return !access(path, R_OK);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), ascending);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void progress(const struct benchmark *b, int run, int runs)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s %d/%d%s", b->name, run, runs,
			run == runs ? "\r\033[K" : "");
}

const char *const other_names[OTHERS] = { "pasta", "slirp4netns" };
static const enum way other_ways[OTHERS] = { WAY_PASTA, WAY_SLIRP };

/* The runs with pasta or slirp4netns. A run that fails is reported and not counted. After two
 * that failed no more are made. */
struct other {
	double value[RUNS_MAX];
	int runs, failures;
};

static void measure_others(const struct benchmark *b, struct other *others)
{
	char why[sizeof(((struct result *)0)->why)];

	for (int i = 0; i < OTHERS; i++) {
		struct other *o = &others[i];

		if (o->failures >= 2 || !guest_possible(other_ways[i]))
			continue;
		if (measure(b, other_ways[i], &o->value[o->runs], why, sizeof(why))) {
			o->runs++;
			continue;
		}
		o->failures++;
		fprintf(stderr, "guise-bench: %s: a run of %s is not counted: %s\n", b->name,
			other_names[i], why);
	}
}

/* Whether r's benchmark cannot be run at all. Then r has the reason. */
static bool cannot_run(struct result *r, enum way way)
{
	const struct benchmark *b = r->b;

	if (b->far && geteuid())
		snprintf(r->why, sizeof(r->why), "needs root, to make network namespaces");
	else if (b->guest && !guest_possible(WAY_TUN))
		snprintf(r->why, sizeof(r->why), "no guise beside this program");
	else if (b->hooks && way == WAY_API)
		snprintf(r->why, sizeof(r->why),
			 "needs the preload library: libguise alone does not do this");
	else
		return false;
	return true;
}

/* Whether the host has anything to compare with. */
static void find_host(struct result *r)
{
	if (r->b->no_host)
		snprintf(r->no_host, sizeof(r->no_host), "the host has nothing like it");
	else if (r->b->paths)
		paths_host(r->no_host, sizeof(r->no_host));
}

/* A run on one side; false, with a sentence in r that names the side. */
static bool measure_side(struct result *r, enum way way, double *value)
{
	char why[sizeof(r->why) - 32];

	if (measure(r->b, way, value, why, sizeof(why)))
		return true;
	snprintf(r->why, sizeof(r->why), "on %s: %s", way == WAY_HOST ? "the host" : "guise", why);
	return false;
}

/* Makes all runs of one benchmark; false if one failed. */
static bool compare(struct result *r, enum way way, int runs)
{
	static double guise[RUNS_MAX], host[RUNS_MAX];
	struct other others[OTHERS] = { 0 };
	const struct benchmark *b = r->b;

	if (cannot_run(r, way))
		return true;
	find_host(r);
	if (b->guest)
		way = WAY_TUN;
	if (b->idle) {
		progress(b, 0, runs);
		if (!measure_idle(b, way, runs, guise, r->why, sizeof(r->why)))
			return false;
		progress(b, runs, runs);
	}
	for (int i = 0; i < runs && !b->idle; i++) {
		progress(b, i, runs);
		if (!measure_side(r, way, &guise[i]))
			return false;
		if (!r->no_host[0] && !measure_side(r, WAY_HOST, &host[i]))
			return false;
		if (b->guest)
			measure_others(b, others);
		progress(b, i + 1, runs);
	}
	r->guise = median(guise, runs);
	r->host = r->no_host[0] ? 0 : median(host, runs);
	for (int i = 0; i < OTHERS; i++)
		r->others[i] = others[i].runs ? median(others[i].value, others[i].runs) : 0;
	r->runs = runs;
	return true;
}

static int compare_all(const bool *chosen, enum way way, int runs, bool json)
{
	static struct result results[sizeof(benchmarks) / sizeof(benchmarks[0])];
	bool good = true;
	int n = 0;

	for (int i = 0; i < benchmark_count; i++) {
		struct result *r = &results[n];

		if (!chosen[i])
			continue;
		n++;
		r->b = &benchmarks[i];
		if (!compare(r, way, runs)) {
			fprintf(stderr, "guise-bench: %s: %s\n", r->b->name, r->why);
			good = false;
		}
	}
	(json ? report_json : report_table)(results, n);
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool chosen[sizeof(benchmarks) / sizeof(benchmarks[0])] = { false };
	enum way way = WAY_PRELOAD;
	bool json = false, any = false;
	int runs = RUNS;

	if (argc == 2 && !strcmp(argv[1], JOIN_FLAG))
		join_main();
	if (argc == 4 && !strcmp(argv[1], "--worker"))
		for (int i = 0; i < benchmark_count; i++)
			if (!strcmp(argv[2], benchmarks[i].name))
				worker_main(&benchmarks[i], argv[3]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--api")) {
			way = WAY_API;
		} else if (!strcmp(argv[i], "--list")) {
			return list();
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			return usage(stdout);
		} else if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
			runs = atoi(argv[++i]);
			if (runs < 1 || runs > RUNS_MAX) {
				fprintf(stderr, "guise-bench: --runs %s: expected 1 to %d\n",
					argv[i], RUNS_MAX);
				return 2;
			}
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "guise-bench: unknown flag %s\n", argv[i]);
			return usage(stderr);
		} else if (choose(chosen, argv[i])) {
			any = true;
		} else {
			fprintf(stderr, "guise-bench: no benchmark \"%s\"; there are:\n", argv[i]);
			for (int k = 0; k < benchmark_count; k++)
				fprintf(stderr, "  %s\n", benchmarks[k].name);
			return 2;
		}
	}
	if (!any)
		choose(chosen, "*");
	if (getenv("GUISE_STACK")) {
		fprintf(stderr,
			"guise-bench: this process is on a stack of guise already, so there "
			"is no host to compare with: start it without guise run\n");
		return 2;
	}
	if (!find_programs() || !has_program("guise-holder")) {
		fprintf(stderr, "guise-bench: no guise-holder beside this program\n");
		return 1;
	}
	if (way == WAY_PRELOAD && !has_program("libguise-preload.so")) {
		fprintf(stderr, "guise-bench: no libguise-preload.so beside this program; with "
				"--api libguise is called directly\n");
		return 1;
	}
	return compare_all(chosen, way, runs, json);
}
