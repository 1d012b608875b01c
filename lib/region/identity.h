/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose a thread is: see identity.c. */
#ifndef GUISE_REGION_IDENTITY_H
#define GUISE_REGION_IDENTITY_H

#include <stdint.h>

#include <stdbool.h>

struct guise_stack;

struct guise_rights;

/* Of the calling thread, as the arguments of GUISE_NR_IDENTIFY. */
void guise_identity(struct guise_stack *s, uint64_t arg[6]);
/* Tells the stack, of this thread or of all of its process. */
void guise_identity_changed(struct guise_stack *s, bool all);
/* Of a program with these rights; here: in the user namespace of the holder; as_host:
 * GUISE_PRIVILEGES_HOST. */
void guise_identity_of(const struct guise_rights *r, bool here, bool as_host, uint64_t arg[6]);
/* The inode of the caller's user namespace; 0: not known. */
uint64_t guise_user_namespace(void);

#endif
