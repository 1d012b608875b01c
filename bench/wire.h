/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A way between two hosts: network namespaces of this process's making, which
 * vanish with it. The far end is served by the host's stack in both cases; the
 * near end is a namespace, too (veth), or the descriptor of a tap for guise.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "calls.h"

#include <stdbool.h>
#include <stddef.h>

#define WIRE_NEAR "198.18.0.1"
#define WIRE_FAR  "198.18.0.2"
/* The far end's, too, by way of WIRE_FAR, the router: pasta takes that for the host. */
#define WIRE_BEYOND "198.51.100.1"

struct wire {
	int near; /* namespace; -1: a tap */
	int tap;  /* -1: veth */
	int far;  /* namespace */
	pid_t server;
};

/* serve: what the far end does with the one connection that it takes. */
bool wire_make(struct wire *w, bool tap, void (*serve)(int fd), char *why, size_t size);
void wire_remove(struct wire *w);

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
