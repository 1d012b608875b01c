/* SPDX-License-Identifier: GPL-2.0-only */
/* The results, as a table and as JSON; docs/benchmarks.md has the format. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "benchmark.h"

#define OTHERS 2 /* pasta and slirp4netns, with which a guest is compared */

extern const char *const other_names[OTHERS];

struct result {
	const struct benchmark *b;
	double guise, host;    /* medians */
	double others[OTHERS]; /* medians, too; 0: there is none */
	int runs;              /* on each side; 0: skipped */
	char why[700];         /* why it was skipped */
	char no_host[128];     /* why there is nothing to compare with; "": there is */
};

void report_table(const struct result *r, int n);
void report_json(const struct result *r, int n);

#endif
