/* SPDX-License-Identifier: GPL-2.0-only */
/* The warden as its members' tracer: what a killed one leaves undone is done. */
#ifndef GUISE_HOLDER_TRACER_H
#define GUISE_HOLDER_TRACER_H

#include "holder/isolation.h"
#include "holder/members/untraced.h"

#include <stdbool.h>
#include <sys/types.h>

/* questions: the channel on which the carrier answers. */
void tracer_begin(int questions, const struct isolation_user *user);

/*
 * Traces all threads of that process, and those that it makes. 0, or -errno and why:
 * -EPERM where the host does not allow it, another process traces it, or the stack's user may not.
 */
int tracer_seize(pid_t pid, enum untraced *why);

/* Lets go of all threads of that process. 0; -ESRCH: it is not traced. */
int tracer_release(pid_t pid);

/* Does what there is to do. True when process `child` has ended: how. */
bool tracer_turn(pid_t child, int *how);
/* Nanoseconds until the next turn is due in any case; -1: none is. */
long tracer_patience(void);

#endif
