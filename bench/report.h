/* SPDX-License-Identifier: GPL-2.0-only */
/* The results, for people and for programs; docs/benchmarks.md has the format. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "benchmark.h"

#define OTHERS 2 /* that a guest is measured beside */

extern const char *const other_names[OTHERS];

struct result {
	const struct benchmark *b;
	double guise, host;    /* medians */
	double others[OTHERS]; /* likewise; 0: none */
	int runs;              /* on each side; 0: skipped */
	char why[700];         /* it was skipped */
};

void report_table(const struct result *r, int n);
void report_json(const struct result *r, int n);

#endif
