/* SPDX-License-Identifier: GPL-2.0-only */
/* Two shaped paths between two ends, for a connection of Multipath TCP. */
#ifndef BENCH_PATHS_H
#define BENCH_PATHS_H

#include "benchmark.h"

#include <stddef.h>

/* One run of b, both ends on stacks of guise, or both on the host's. */
bool paths_measure(const struct benchmark *b, enum way way, double *value, char *why, size_t size);
/* Sets why to the reason for which the host's own stack cannot be measured, or to "". */
void paths_host(char *why, size_t size);

/* The workload, run at the near end. */
double two_paths(enum way way);

#endif
