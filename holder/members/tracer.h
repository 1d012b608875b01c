/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder as its members' tracer: what a killed one leaves undone is done. */
#ifndef GUISE_HOLDER_TRACER_H
#define GUISE_HOLDER_TRACER_H

#include "region/stack.h"

/* NULL with the error set. */
struct tracer *tracer_start(struct guise_stack *s);

/*
 * Traces all threads of that process, and those that it makes. 0, or -errno:
 * -EPERM where the host does not allow it, or another process traces it.
 */
int tracer_seize(struct tracer *t, pid_t pid);

/* Lets go of all threads of that process. 0; -ESRCH: it is not traced. */
int tracer_release(struct tracer *t, pid_t pid);

/* Ends it; what is still traced goes on untraced. */
void tracer_stop(struct tracer *t);

#endif
