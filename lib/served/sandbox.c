// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program in a sandbox: a filter of system calls (seccomp) may end it for any that guise makes
 * of its own accord. What it needs where data is moved is futex(2) alone.
 *
 * Threads that wait for their servant's answer make sched_yield(2) meanwhile (lane.c), unless the
 * program is in a sandbox. Each says so in its lane before it looks whether it is. Who takes the
 * program into one sets that first, and then waits for all lanes: so no thread is on its way into
 * that call when the filter comes.
 *
 * Limits: a thread that is stopped (SIGSTOP, a debugger) in that moment is awaited for PATIENCE_NS.
 * A filter that comes by an instruction of the program's own, past libc and past guise's traps of
 * system calls, is not seen.
 */
#include "served/client.h"

#include "host/sys.h"
#include "region/vcpu.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS 2000000000ull
#define MOMENT_NS   20000
#define STATUS      4096

void guise_served_sandbox(struct guise_served *v)
{
	const struct timespec moment = { 0, MOMENT_NS };
	uint64_t deadline = guise_host_now() + PATIENCE_NS;
	uint32_t lanes;

	__atomic_store_n(&v->sandboxed, true, __ATOMIC_SEQ_CST);
	lanes = __atomic_load_n(&v->ring->lanes, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < lanes && i < GUISE_LANES; i++)
		while (__atomic_load_n(&guise_ring_lane(v->ring, i)->yields, __ATOMIC_SEQ_CST) &&
		       guise_host_now() < deadline)
			host_sys(SYS_nanosleep, &moment, NULL);
}

bool guise_served_filtered(void)
{
	static const char line[] = "\nSeccomp:\t";
	char status[STATUS];
	const char *at;
	long fd = host_sys(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC), n;

	if (fd < 0)
		return true;
	n = host_sys(SYS_read, fd, status, sizeof(status) - 1);
	host_sys(SYS_close, fd);
	if (n < 0)
		return true;
	status[n] = '\0';
	at = strstr(status, line);
	/* A kernel without seccomp has no such line, but the last one. */
	return at ? at[sizeof(line) - 1] != '0' : !strstr(status, "\nnonvoluntary_ctxt_switches:");
}
