/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run: one wire, one seed. It happens in a process of its own, which may die
 * of what it finds; what it has to say lies in memory that outlives it.
 */
#ifndef GUISE_FUZZ_RUN_H
#define GUISE_FUZZ_RUN_H

#include "wire.h"

struct report {
	/* What is asked for. */
	uint64_t seed;
	uint64_t frames; /* 0: until `seconds` have passed */
	double seconds;

	/* What there was; it moves on as long as the run lives. */
	uint64_t fed;     /* frames, answers of the far end included */
	uint64_t refused; /* by what carries them */
	uint64_t accepted, malformed, lost, malformed_in_backend;
	uint64_t ip4, ip6; /* came to ip_rcv(), ipv6_rcv() */
	uint64_t examinations, sabotages;
	uint64_t memory_used; /* kB, the most */
	uint64_t beat;        /* one more each time there is progress */
	uint64_t batch;       /* number of the batch at hand */
	double took;          /* seconds of feeding */
	char finding[640];    /* empty: none */
	char console[2048];   /* the end of what the kernel said */
};

#define RUN_BATCH 64 /* frames */

/* 0, or 1 when something was found. Never twice in a process. */
int run_wire(const struct wire *wire, struct report *report);

#endif
