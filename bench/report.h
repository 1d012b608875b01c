/* SPDX-License-Identifier: GPL-2.0-only */
/* The results, for people and for programs; docs/benchmarks.md has the format. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "benchmark.h"

struct result {
	const struct benchmark *b;
	double guise, host; /* medians */
	int runs;           /* on each side; 0: skipped */
	char why[700];      /* it was skipped */
};

void report_table(const struct result *r, int n);
void report_json(const struct result *r, int n);

#endif
