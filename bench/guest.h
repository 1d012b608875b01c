/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that cannot be preloaded, and what else gives such a program a network
 * without rights on the host: a network namespace of its own, in which it speaks TCP
 * with a tun or tap whose other end carries that on.
 */
#ifndef BENCH_GUEST_H
#define BENCH_GUEST_H

#include "calls.h"

#include <stdbool.h>

/* Whether this way is to be had on this machine. */
bool guest_possible(enum way way);
/* This process becomes program, with its arguments, in such a namespace. */
void guest_become(enum way way, const char *program, const char *const *argv)
	__attribute__((noreturn));

#endif
