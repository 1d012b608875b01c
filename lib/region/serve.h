/* SPDX-License-Identifier: GPL-2.0-only */
/* The holder's side of the join protocol (join.h): which processes are members. */
#ifndef GUISE_REGION_SERVE_H
#define GUISE_REGION_SERVE_H

#include "region/join.h"
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
	uint64_t served;              /* of those that joined: programs with a servant */
	uint32_t user_of[GUISE_MAX_PROCS]; /* whose program it is that a servant serves, and ... */
	struct guise_served_by_user {
		uint32_t uid;
		uint64_t n;
	} served_by_user[8];  /* ... how many programs of a user there were; n is 0: free */
	uint64_t untraced[8]; /* ever, by why: holder/members/untraced.h */
	/* NULL, or called when the member's pid is known, before the member is answered. */
	void (*known)(struct guise_server *v, unsigned int proc);
	/* NULL, or has that process traced no more: 0, or -errno with a sentence. */
	int (*let_go)(struct guise_server *v, int pid);
	/* NULL, or notes a program that is on the host's stack. */
	void (*outside)(const struct guise_join_outside *what);
	/* NULL: all are members. Or starts a servant for a process that is to be served: it
	 * answers on channel. end: of the servant's place. 0, or -errno with a sentence. */
	int (*serve)(int channel, const struct ucred *who, int end);
	/* NULL, or called when the process that has come to a place is served: the place's
	 * channel is another one now, and pid, if it was a member itself, is none any more. */
	void (*becomes_served)(struct guise_server *v, unsigned int proc, int old_channel, int pid);
	bool serve_all; /* whatever their rights are */
	/* NULL, or whether the sender of a message had the stack's user, and has its rights. */
	bool (*is_member)(const struct ucred *who);
	/* NULL, or whose a program is, as arguments of GUISE_NR_IDENTIFY: 1 if it has the rights of
	 * the stack's user, 0 if not, or -errno. */
	int (*identify)(pid_t program, bool as_host, uint64_t arg[6]);
	bool for_servant[GUISE_MAX_PROCS]; /* the place is expected to be one's */
	int tracer;                        /* the process that traces the members */
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
 * ticket are closed; -ENOMSG: one that is of no member was answered; any other -errno: a
 * request was refused (counted).
 */
int guise_server_request(struct guise_server *v);
/* The same over another ticket, with SO_PASSCRED set: it is closed and becomes -1
 * once every copy of its other end is closed. */
int guise_server_request_over(struct guise_server *v, int *ticket);

/* Answers on the channel that it is refused: err (-errno), with this thread's sentence. */
void guise_server_refuse(int channel, int err);

/* Reads a member's message on its channel: afterwards the pid of a process that was expected
 * may be known. False when the channel has hung up. */
bool guise_server_hear(struct guise_server *v, unsigned int proc);

/* Whether the member's process has ended, for hosts without pidfds: asks /proc. */
bool guise_server_ended(const struct guise_server *v, unsigned int proc);

/* What is to be known of a servant's program is written into its place. As identify(). */
int guise_server_identify(struct guise_server *v, unsigned int proc, pid_t program);

/* The member's program is gone: its tasks are for the reaper. */
void guise_server_gone(struct guise_server *v, unsigned int proc);

/* Tells all members that the holder goes. */
void guise_server_end(struct guise_server *v);

#endif
