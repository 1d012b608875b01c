/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder's life while the stack has, or may get, members. */
#ifndef GUISE_HOLDER_MEMBERS_H
#define GUISE_HOLDER_MEMBERS_H

#include "holder/control/control.h"

#include "region/serve.h"

#include <stdbool.h>

#define END_SECONDS 10 /* for each look whether all is delivered, and for the end of all threads */

struct guests;

/*
 * Lets members in and watches them, until the last has left, no guest is there and no
 * copy of a ticket is left (unless keep), a signal arrives on signals (a signalfd), or
 * the end that was asked for through control (or NULL) must come. 0, or -errno with a
 * sentence.
 */
int members_serve(struct guise_server *v, struct guests *guests, struct control *control,
		  int signals, bool keep);

#endif
