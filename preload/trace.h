/* SPDX-License-Identifier: GPL-2.0-only */
/* guise run --trace-calls; trace.c has what it shows. */
#ifndef GUISE_PRELOAD_TRACE_H
#define GUISE_PRELOAD_TRACE_H

#include <stdbool.h>

/* One made by socket() or socketpair(): result is a descriptor or -errno. */
void trace_socket(const char *call, int family, int type, int protocol, long result, bool stacks);
/* One that accept() gave. */
void trace_accept(int listener, int fd);
/* One of the host's that the process has at its end, and did not have when it joined. */
void trace_escaped(int fd);

#endif
