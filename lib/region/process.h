/* SPDX-License-Identifier: GPL-2.0-only */
/* What the host's /proc says of processes and threads. */
#ifndef GUISE_REGION_PROCESS_H
#define GUISE_REGION_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guise_process {
	char state;
	uint64_t threads, start_time; /* the latter with the pid: which process */
};

/* False, and all 0, where it cannot be read. */
bool guise_process_read(pid_t pid, struct guise_process *process);

/* Whether now, as just read, says that the process which began at start_time has ended. */
bool guise_process_over(const struct guise_process *now, uint64_t start_time);

struct guise_thread {
	pid_t process, tracer; /* tracer 0: none */
	pid_t inner;           /* its number in its own PID namespace */
	uid_t user;
	gid_t group;
	uint64_t caught; /* signals with a handler: bit 0 is that of signal 1 */
};

bool guise_thread_read(pid_t tid, struct guise_thread *thread);

#endif
