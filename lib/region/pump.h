/* SPDX-License-Identifier: GPL-2.0-only */
/* The thread that works when nobody waits inside the stack. */
#ifndef GUISE_REGION_PUMP_H
#define GUISE_REGION_PUMP_H

#include "region/stack.h"

int guise_pump_start(struct guise_stack *s);
void guise_pump_wake(struct guise_stack *s);
void guise_pump_stop(struct guise_stack *s);

#endif
