/* SPDX-License-Identifier: GPL-2.0-only */
/* The process that follows the host's interfaces for a stack; follower.c. */
#ifndef GUISE_HOLDER_FOLLOWER_H
#define GUISE_HOLDER_FOLLOWER_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

struct plan;

#define FOLLOWER_FDS 3

/* From here on there is one, if the plan says so. */
void follower_begin(const struct plan *p);
/* The descriptors of the plan that it is started with; -1: none. */
void follower_descriptors(const struct plan *p, int fd[FOLLOWER_FDS]);
/* Starts it if it is due, and keeps what it has handed over. */
void follower_turn(void);
/* Its channel, to be polled; -1: none. */
int follower_channel(void);
/* Nanoseconds until the next turn is due in any case; -1: none is. */
long follower_patience(void);
/* A child has ended: how. */
void follower_ended(pid_t pid, int how);
/* It ends now, and with it what it has handed over. */
void follower_end(void);

#endif
