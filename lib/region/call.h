/* SPDX-License-Identifier: GPL-2.0-only */
/* Entering the stack. */
#ifndef GUISE_REGION_CALL_H
#define GUISE_REGION_CALL_H

#include "region/stack.h"

/* Makes the slot's kernel task; 0 or -errno. */
long guise_call_attach(struct guise_stack *s, struct guise_slot *slot);
/* Says whose the thread is: what a program of before has made does not know. */
void guise_call_identify(struct guise_stack *s, struct guise_slot *slot);
/* Ends the slot's kernel task. */
void guise_call_exit(struct guise_stack *s, struct guise_slot *slot);

#endif
