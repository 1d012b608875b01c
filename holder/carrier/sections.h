/* SPDX-License-Identifier: GPL-2.0-only */
/* The carrier answers the warden's questions about threads; sections.c. */
#ifndef GUISE_HOLDER_SECTIONS_H
#define GUISE_HOLDER_SECTIONS_H

#include "region/stack.h"

/* A thread that answers on that channel, until sections_stop(). NULL with the error set. */
struct sections *sections_start(struct guise_stack *s, int questions);
void sections_stop(struct sections *c);

#endif
