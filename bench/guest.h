/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guests, and other ways to give a program a network without rights on the host. In each
 * of them the program is in a network namespace with a tun or tap, at whose other end
 * guise, pasta or slirp4netns carries its connections on.
 */
#ifndef BENCH_GUEST_H
#define BENCH_GUEST_H

#include "calls.h"

#include <stdbool.h>

/* Whether this machine has this way. */
bool guest_possible(enum way way);
/* Executes program, with its arguments, in such a namespace. */
void guest_become(enum way way, const char *program, const char *const *argv)
	__attribute__((noreturn));

#endif
