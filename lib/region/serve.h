/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder's side of the join protocol (join.h): which processes are members. */
#ifndef GUISE_REGION_SERVE_H
#define GUISE_REGION_SERVE_H

#include "region/stack.h"

#include <sys/socket.h>

struct guise_server {
	struct guise_stack *s;
	int ticket;                   /* -1 once every copy of its other end is closed */
	int alive[2];                 /* a pipe: members see us end when it hangs up; [1] is ours */
	int control[GUISE_MAX_PROCS]; /* a member's channel, by process index; -1: none */
	unsigned int members, most;   /* now, and at the most */
	uint64_t limit;               /* of this process's descriptors */
	uint64_t joined, refused;     /* ever */
	uint64_t untraced[8];         /* ever, by why: holder/members/untraced.h */
	/* NULL, or called when the member's pid is known, before the member is answered. */
	void (*known)(struct guise_server *v, unsigned int proc);
	/* NULL, or has that process traced no more: 0, or -errno with a sentence. */
	int (*let_go)(struct guise_server *v, int pid);
	/* NULL, or starts a servant for a process that is to be served: it answers on
	 * channel. end: of the servant's place. 0, or -errno with a sentence. */
	int (*serve)(int channel, const struct ucred *who, int end);
	void *context;
};

/*
 * s is booted and its links are open. The ticket belongs to the server from now on. Each member
 * takes some descriptors of the holder. So the holder's own limit is raised as far as the host
 * allows, and at most as many members are admitted as there are descriptors for.
 */
int guise_server_init(struct guise_server *v, struct guise_stack *s, int ticket);

/*
 * Answers one request. Returns the new member's process index (its pid is 0 if it is only
 * expected); -EAGAIN: no request waits; -EPIPE: none will come, because all copies of the
 * ticket are closed; any other -errno: a request was refused (counted).
 */
int guise_server_request(struct guise_server *v);
/* The same over another ticket, with SO_PASSCRED set: it is closed and becomes -1
 * once every copy of its other end is closed. */
int guise_server_request_over(struct guise_server *v, int *ticket);

/* Reads a member's message on its channel: afterwards the pid of a process that was expected
 * may be known. False when the channel has hung up. */
bool guise_server_hear(struct guise_server *v, unsigned int proc);

/* Whether the member's process has ended, for hosts without pidfds: asks /proc. */
bool guise_server_ended(const struct guise_server *v, unsigned int proc);

/* The member's program is gone: its tasks are for the reaper. */
void guise_server_gone(struct guise_server *v, unsigned int proc);

/* Tells all members that the holder goes. */
void guise_server_end(struct guise_server *v);

#endif
