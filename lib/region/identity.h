/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose a thread is: see identity.c. */
#ifndef GUISE_REGION_IDENTITY_H
#define GUISE_REGION_IDENTITY_H

#include <stdint.h>

struct guise_stack;

/* Of the calling thread, as the arguments of GUISE_NR_IDENTIFY. */
void guise_identity(struct guise_stack *s, uint64_t arg[6]);
/* The inode of the caller's user namespace; 0: not known. */
uint64_t guise_user_namespace(void);

#endif
