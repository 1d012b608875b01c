// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clocks that only the host's kernel can read.
 *
 * Programs read clocks through libc, and libc through the vDSO, which needs no system call
 * for most of them. For the others, processor time above all, the vDSO makes the call itself,
 * outside of libc's text: a raw call (trap.c), which costs many times what it does. So such
 * clocks are read here by a call of guise's own.
 *
 * Which: those that no vDSO reads; and, from the first trap on that shows it, all of them, where
 * the host's clock source cannot be read without a system call (hpet, say).
 */
#include "preload/preload.h"

#include "host/sys.h"
#include "preload/raw/number.h"

#include <sys/time.h>
#include <time.h>

/* Those of Linux 6.12 (vdso_clockid_valid() and lib/vdso/gettimeofday.c there). */
#define OF_VDSO                                                                              \
	(1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC | 1u << CLOCK_MONOTONIC_RAW |          \
	 1u << CLOCK_REALTIME_COARSE | 1u << CLOCK_MONOTONIC_COARSE | 1u << CLOCK_BOOTTIME | \
	 1u << CLOCK_TAI)

static bool by_call;

static bool of_vdso(clockid_t clock)
{
	return clock >= 0 && clock < 32 && OF_VDSO & 1u << clock;
}

void preload_clock_trapped(long clock)
{
	if (of_vdso((clockid_t)clock))
		by_call = true;
}

HOOK int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (likely(of_vdso(clock) && !by_call))
		return HOST(clock_gettime)(clock, time);
	return (int)libc_result(host_sys(SYS_clock_gettime, clock, time));
}

HOOK int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	if (likely(!by_call))
		return HOST(gettimeofday)(time, zone);
	return (int)libc_result(host_sys(SYS_gettimeofday, time, zone));
}

/* Not by the vDSO, which ends the program where the kernel says EFAULT. */
long number_clock_gettime(const struct preload_arguments *x)
{
	return number_on_host(SYS_clock_gettime, x);
}

long number_gettimeofday(const struct preload_arguments *x)
{
	return number_on_host(SYS_gettimeofday, x);
}

HOOK clock_t clock(void)
{
	struct timespec used;

	if (libc_result(host_sys(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used)))
		return -1;
	return used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (1000000000 / CLOCKS_PER_SEC);
}
