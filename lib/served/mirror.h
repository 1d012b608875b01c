/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings of packet sockets that a served program has mapped. See mirror.c. */
#ifndef GUISE_SERVED_MIRROR_H
#define GUISE_SERVED_MIRROR_H

#include "region/stack.h"

/* A copy of the receive ring of that descriptor of the stack: its number, with a descriptor of its
 * memory, which is the caller's; or -errno. */
int guise_mirror_make(struct guise_stack *s, int sfd, int *memory);
void guise_mirror_free(struct guise_stack *s, int number);
/* In a forked process, which has none of its parent's. */
void guise_mirrors_forget(void);
/* What came goes to the program, and what it has read goes back. */
void guise_mirrors_turn(void);

#endif
