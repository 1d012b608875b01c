/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef GUISE_MPTCP_CLOCK_H
#define GUISE_MPTCP_CLOCK_H

#include <time.h>

static inline double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
