/* SPDX-License-Identifier: GPL-2.0-only */
/* The socket through which guise asks a holder for things; control.c has the theory. */
#ifndef GUISE_HOLDER_CONTROL_H
#define GUISE_HOLDER_CONTROL_H

#include "region/serve.h"

#include <stdbool.h>

struct control;
struct plan;

/* What the plan says: a listening SOCK_SEQPACKET socket, its path, and the name's (or NULL). */
struct control *control_new(int listener, const char *path, const char *name);
/* The socket, or -1. */
int control_listener(const struct control *c);
/* Its path; c is not NULL. */
const char *control_path(const struct control *c);
/* KEY=VALUE, to be told to clients that ask about the stack. 0 or -errno with a sentence. */
int control_tell(struct control *c, const char *word);
void control_free(struct control *c);

/* The functions below do nothing where c is NULL. */

/* From here on requests are answered. 0 or -errno with a sentence. */
int control_start(struct control *c, struct guise_server *v, struct plan *p);
/* Readable when control_turn() has work; -1: never. */
int control_fd(const struct control *c);
/* Does what there is to do, without waiting; came() is told of each new member. */
void control_turn(struct control *c, void (*came)(void *arg, unsigned int proc), void *arg);
/* Whether a ticket that was handed out may still be used. */
bool control_has_tickets(const struct control *c);
/* Whether the stack stays without members. */
bool control_keeps(const struct control *c);
/* The stack is to end; ms until it must come (0: now), or until the next look. */
bool control_ending(const struct control *c, int *ms);
/* The last program has left: from here on the stack is ending, and no ticket counts. */
void control_end(struct control *c);
/* From here on no request is answered. Clients wait until control_stop() hangs up: so
 * they know that the stack is there as long as something of it is left on the host. */
void control_silence(struct control *c);
/* The stack has ended: the path is free again. Clients that asked for the end hear of it when
 * this process has ended. */
void control_stop(struct control *c);

#endif
