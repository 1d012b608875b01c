/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is measured. Each workload runs in a process of its own, most for less than a
 * second, and returns one figure. When something fails it prints what, and the process
 * ends.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "calls.h"

#include <stdint.h>
#include <time.h>

/* micro.c: nanoseconds a call */
double getppid_run(enum way way);
double recv_eagain_run(enum way way);
double socket_close_run(enum way way);
double many_sockets_run(enum way way);
double host_call_run(enum way way);
double raw_call_run(enum way way);
double nanosleep_run(enum way way); /* microseconds */
double host_read_run(enum way way);

/* loopback.c: microseconds a round trip, Gbit/s */
double rr_1thread(enum way way);
double rr_2threads(enum way way);
double rr_2procs(enum way way);
double bulk_1thread(enum way way);
double bulk_2threads(enum way way);
double bulk_2procs(enum way way);

/* stack.c: milliseconds, MiB, microseconds; idle_member is a program that only waits */
double create_time(enum way way);
double create_memory(enum way way);
double join_time(enum way way);
double idle_member(enum way way);

/* processes.c: connections a second; microseconds */
double accept_rate(enum way way);
double fork_time(enum way way);
double join_program(enum way way);

/* processes.c: the argument of a program that join_program starts, and what that program does */
#define JOIN_FLAG "--joining"
void join_main(void) __attribute__((noreturn));

/* mixed.c: thousand round trips a second, of 1, 4, 16 and 64 pairs of processes together */
double mixed_rr_1(enum way way);
double mixed_rr_4(enum way way);
double mixed_rr_16(enum way way);
double mixed_rr_64(enum way way);

/* rate.c: million calls a second, of 1, 2, 4 and 16 processes together */
double call_rate_1(enum way way);
double call_rate_2(enum way way);
double call_rate_4(enum way way);
double call_rate_16(enum way way);

/* connections.c: connections a second, bytes a connection */
double connections_lo(enum way way);
double connections_idle(enum way way);

/* connections.c, for wire.c: a is the server's address; the server sends its port over control */
double connections_client(int control, struct sockaddr_in a);
void connections_server(int control);

/* loopback.c: a socket that listens on a port of lo; sets *a */
int listener(struct sockaddr_in *a);

/* loopback.c, for wire.c: the two sides of an open connection */
double rr_client(int fd);
void rr_server(int fd);
double bulk_client(int fd, uint64_t bytes);
void bulk_server(int fd, uint64_t bytes);

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#define WARM_NS 20000000ull
#define RUN_NS  200000000ull

/*
 * Nanoseconds that step(fd) takes, measured for about RUN_NS. The clock is read once
 * in `batch` steps. This is inlined so that step is inlined as well.
 */
static inline __attribute__((always_inline)) double ns_per_step(void (*step)(int fd), int fd,
								unsigned int batch)
{
	uint64_t start = now_ns(), end = start + WARM_NS, steps = 0, t;
	unsigned int i;
	int warm;

	for (warm = 1; warm >= 0; warm--) {
		steps = 0;
		do {
			for (i = 0; i < batch; i++)
				step(fd);
			steps += batch;
			t = now_ns();
		} while (t < end);
		if (warm) {
			start = t;
			end = t + RUN_NS;
		}
	}
	return (double)(t - start) / (double)steps;
}

#endif
