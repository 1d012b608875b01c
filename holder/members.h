/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder's life while the stack has, or may get, members. */
#ifndef GUISE_HOLDER_MEMBERS_H
#define GUISE_HOLDER_MEMBERS_H

#include "region/serve.h"

#include <stdbool.h>

/*
 * Lets members in and watches them, until the last has left and no copy of
 * the ticket is left (unless keep), or a signal arrives on signals (a
 * signalfd). 0, or -errno with a sentence.
 */
int members_serve(struct guise_server *v, int signals, bool keep);

#endif
