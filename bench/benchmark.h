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
};

struct benchmark {
	const char *name, *unit;
	double (*run)(enum way way);
	/* The holder's plan after its name; NULL: needs no stack. */
	const char *plan;
	/* Not NULL: over a tap or a veth, and what the far end does. */
	void (*far)(int fd);
	bool no_host; /* nothing on the host to compare with */
	bool api;     /* not a call of the preload library's */
	bool hooks;   /* not a call of libguise's */
	bool guest;   /* a program that is not preloaded: guest.h */
	bool busy;    /* beside a loop that keeps one of two processors busy */
	bool idle;    /* run counts wake-ups while it only waits: see idle.c */
	enum floor_of floor_of;
	double floor;
	const char *what;
};

extern const struct benchmark benchmarks[];
extern const int benchmark_count;

/* Where the programs of guise are, as this one's own file: "DIR/". */
extern char programs[4096];

/* One run; false with a sentence in why. */
bool measure(const struct benchmark *b, enum way way, double *value, char *why, size_t size);
/* The same for b->idle: n runs side by side. */
bool measure_idle(const struct benchmark *b, enum way way, int n, double *value, char *why,
		  size_t size);

/* A process of this program that runs b, and the read end of its output. */
struct worker {
	pid_t pid;
	int output;
	bool group; /* what it started belongs to it */
};

bool worker_start(struct worker *w, const struct benchmark *b, enum way way, int ticket, int netns,
		  char *why, size_t size);
/* Its figure; false if none comes in time. */
bool worker_result(struct worker *w, double *value, char *why, size_t size);
void worker_stop(struct worker *w);
/* In the worker: does not return. */
void worker_main(const struct benchmark *b, const char *way) __attribute__((noreturn));

#endif
