/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link between two hosts, which are network namespaces. This process makes them, and
 * they end with it. The far end is always on the host's stack. The near end is a
 * namespace, too, and the link a veth pair; for guise it is the descriptor of a tap.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "calls.h"

#include <stdbool.h>
#include <stddef.h>

#define WIRE_NEAR "198.18.0.1"
#define WIRE_FAR  "198.18.0.2"
/* Another address of the far end, with WIRE_FAR as the router to it: pasta would take packets to
 * WIRE_FAR, its router, as packets to its own host. */
#define WIRE_BEYOND "198.51.100.1"

struct wire {
	int near; /* namespace; -1: the near end is a tap */
	int tap;  /* -1: it is a veth */
	int far;  /* namespace */
	pid_t server;
};

/* serve: runs at the far end, with the one connection that it accepts. */
bool wire_make(struct wire *w, bool tap, void (*serve)(int fd), char *why, size_t size);
void wire_remove(struct wire *w);

/* Of this process; made, and entered; a tap in the current one. 0, or -errno. */
int wire_own_namespace(void);
int wire_new_namespace(int *fd);
int wire_tap(const char *name, int *tap);

/* wire.c, run at the near end */
double wire_rr(enum way way);
double wire_bulk(enum way way);
double wire_connections(enum way way);
double guest_rr(enum way way);
double guest_bulk(enum way way);
void wire_rr_server(int fd);
void wire_bulk_server(int fd);
void wire_connections_server(int fd);

#endif
