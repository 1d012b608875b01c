/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of benchmarks, and how one is run. */
#ifndef BENCH_BENCHMARK_H
#define BENCH_BENCHMARK_H

#include "calls.h"

#include <stdbool.h>
#include <stddef.h>

enum floor_of {
	FLOOR_NONE,
	RATIO_AT_MOST,
	RATIO_AT_LEAST,
	GUISE_AT_MOST,
	GUISE_AT_LEAST,
};

struct benchmark {
	const char *name, *unit;
	double (*run)(enum way way);
	/* The holder's plan, without the line of the name; NULL: no stack is needed. */
	const char *plan;
	/* Not NULL: it runs over a tap or a veth, and this runs at the far end. */
	void (*far)(int fd);
	bool no_host; /* there is nothing on the host to compare with */
	bool api;     /* it calls libguise: the preload library does not have this call */
	bool hooks;   /* it needs the preload library: libguise does not have this call */
	bool guest;   /* it runs as a guest: guest.h */
	bool busy;    /* it runs beside a loop that keeps one of two processors busy */
	bool paths;   /* it runs over two paths by Multipath TCP: paths.h */
	bool idle;    /* it only waits, and wake-ups are counted: idle.c */
	enum floor_of floor_of;
	double floor;
	const char *what;
};

extern const struct benchmark benchmarks[];
extern const int benchmark_count;

/* The folder of guise's programs, this one included: "DIR/". */
extern char programs[4096];

/* Makes one run; false with a sentence in why. */
bool measure(const struct benchmark *b, enum way way, double *value, char *why, size_t size);
/* The same for b->idle: n runs at the same time. */
bool measure_idle(const struct benchmark *b, enum way way, int n, double *value, char *why,
		  size_t size);

/* A process of this program that runs b, and the read end of its output. */
struct worker {
	pid_t pid;
	int output;
	bool group; /* it has started other processes, which belong to the run */
};

bool worker_start(struct worker *w, const struct benchmark *b, enum way way, int ticket, int netns,
		  char *why, size_t size);
/* Reads its figure; false if none comes in time. */
bool worker_result(struct worker *w, double *value, char *why, size_t size);
void worker_stop(struct worker *w);
/* In the worker: does not return. */
void worker_main(const struct benchmark *b, const char *way) __attribute__((noreturn));

#endif
