/* SPDX-License-Identifier: GPL-2.0-only */
/* The process that a stack is started as, and that undoes what was changed; warden.c. */
#ifndef GUISE_HOLDER_WARDEN_H
#define GUISE_HOLDER_WARDEN_H

#include "holder/isolation.h"

#include <stdbool.h>

struct plan;

/* What the carrier has of the warden: its ends of the two channels (wire.h). */
struct carrier {
	int requests, questions;
};

/*
 * Forks the carrier, which is carry(arg, c), and serves it until it has ended; its exit status is
 * what carry() returns. status: the descriptor that hangs up when all is undone. True when all
 * went well.
 */
bool warden(const struct plan *p, const struct isolation_user *user, int status,
	    int (*carry)(void *arg, const struct carrier *c), void *arg);

/* To be called before, so early that no signal is lost. */
void warden_begin(void);

/* Runs the plan's program that undoes what was changed on the host. */
bool warden_undo(const struct plan *p);

#endif
