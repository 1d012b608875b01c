// SPDX-License-Identifier: GPL-2.0-only
/* See process.h. Makes no call of libc that allocates: a waiter in the stack reads it, too. */
#include "region/process.h"

#include "host/sys.h"
#include "region/confined.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES GUISE_PROCESS_BYTES

/* A small file of /proc/PID, terminated; false when it is not there. */
static bool read_file(pid_t pid, const char *name, char text[BYTES])
{
	char path[32];
	long fd, n;

	if (guise_confined.process_file)
		return guise_confined.process_file(pid, name, text);
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = host_sys(SYS_read, fd, text, BYTES - 1);
	host_sys(SYS_close, fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Fields 3, 20 and 22 of stat. */
bool guise_process_read(pid_t pid, struct guise_process *process)
{
	char text[BYTES], *p;

	memset(process, 0, sizeof(*process));
	if (!read_file(pid, "stat", text))
		return false;
	/* The name in brackets may hold anything, brackets too; field 3 follows. */
	p = strrchr(text, ')');
	for (int field = 3; p && field <= 22; field++) {
		p = strchr(p + 1, ' ');
		if (p && field == 3)
			process->state = p[1];
		else if (p && field == 20)
			process->threads = strtoull(p, NULL, 10);
	}
	process->start_time = p ? strtoull(p, NULL, 10) : 0;
	return p;
}

bool guise_process_over(const struct guise_process *now, uint64_t start_time)
{
	if (now->start_time != start_time)
		return true;
	/* A first thread that has ended stays a zombie while others run. */
	return (now->state == 'Z' || now->state == 'X') && now->threads <= 1;
}

/* A number of status: of "Name:" the last in its line. -1: not there. */
static pid_t last_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	long number = -1;
	char *end;

	for (at = at ? at + strlen(name) : NULL; at && *at != '\n'; at = end) {
		long next = strtol(at, &end, 10);

		if (end == at)
			break;
		number = next;
	}
	return (pid_t)number;
}

bool guise_thread_read(pid_t tid, struct guise_thread *thread)
{
	char text[BYTES], *caught;

	if (!read_file(tid, "status", text))
		return false;
	thread->process = last_number(text, "\nTgid:");
	thread->tracer = last_number(text, "\nTracerPid:");
	thread->user = (uid_t)last_number(text, "\nUid:");
	thread->group = (gid_t)last_number(text, "\nGid:");
	thread->inner = last_number(text, "\nNSpid:");
	if (thread->inner < 0) /* before Linux 4.1, or without PID namespaces */
		thread->inner = tid;
	caught = strstr(text, "\nSigCgt:");
	thread->caught = caught ? strtoull(caught + strlen("\nSigCgt:"), NULL, 16) : 0;
	return true;
}
