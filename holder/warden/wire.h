/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the carrier and the warden say to each other, over two SOCK_SEQPACKET pairs: messages of
 * one size each.
 *
 *	requests	the carrier asks for one thing at a time, and waits for the answer
 *	questions	the warden, as tracer, asks about a thread that has stopped
 *
 * The warden believes nothing that it is told: what it does on request, the stack's user could
 * do, too (warden/requests.c).
 */
#ifndef GUISE_HOLDER_WIRE_H
#define GUISE_HOLDER_WIRE_H

#include "holder/members/untraced.h"

#include "region/confined.h"

#include <stdint.h>
#include <sys/user.h>

enum warden_what {
	WARDEN_LISTEN = 1,   /* commands are answered from now on */
	WARDEN_DEADLINE,     /* about: seconds in which the next of these comes; 0: none */
	WARDEN_PROCESS,      /* a file of /proc/about, word: enum warden_file */
	WARDEN_RIGHTS,       /* of process about: value: enum warden_rights; text: its status */
	WARDEN_SEIZE,        /* trace that process; value: enum untraced */
	WARDEN_RELEASE,      /* trace it no more */
	WARDEN_CLIENT,       /* a connection: whether it may ask; value: its user */
	WARDEN_HOLD,         /* a connection: keep it open until all is undone */
	WARDEN_SERVANT,      /* a channel and a place's end: start a servant for process about */
	WARDEN_BELL,         /* gives a pipe, both ends in one descriptor */
	WARDEN_NAME_SERVERS, /* gives /etc/resolv.conf */
	WARDEN_GUEST,        /* result: a process in the guests' namespace, or 0; about: a guess */
	WARDEN_GUEST_TABLE,  /* gives its sockets; about: it; word: enum warden_table */
	WARDEN_KILL_PASST,   /* process about, which does not end by itself */
	WARDEN_WHATS,
};

enum warden_file { WARDEN_STAT, WARDEN_STATUS, WARDEN_FILES };

enum warden_rights {
	WARDEN_MEMBER = 1, /* those of the stack's user */
	WARDEN_HERE = 2,   /* in the warden's user namespace */
};

enum warden_table { WARDEN_TCP, WARDEN_TCP6, WARDEN_UDP, WARDEN_UDP6, WARDEN_TABLES };

#define WARDEN_FDS 2 /* at the most, with a request; an answer brings one at the most */

struct warden_request {
	uint32_t what;
	int32_t about;
	uint32_t word;
	uint32_t pad;
};

struct warden_answer {
	int32_t result; /* or -errno */
	uint32_t value;
	char text[GUISE_PROCESS_BYTES];
};

enum warden_question_what {
	WARDEN_OWNER = 1, /* which thread owns the virtual CPU */
	WARDEN_ENDS,      /* this one ends, with these registers: finish its section */
	WARDEN_STILL,     /* it stands still */
	WARDEN_CONTINUED, /* it does no more */
};

/* A thread, as the stack knows it. */
struct warden_thread {
	int32_t process; /* 0: none */
	int32_t inner;   /* its number in its own PID namespace */
};

struct warden_question {
	uint32_t what;
	uint32_t number; /* of the question, and of its answer */
	struct warden_thread thread;
	struct user_regs_struct regs;
};

struct warden_reply {
	uint32_t number;
	uint32_t bytes; /* not 0: first so much of the thread's memory, from address on */
	uint64_t address;
	struct warden_thread owner;
	uint32_t still; /* threads that stand still */
	uint32_t pad;
};

#define WARDEN_MEMORY 4608u /* at a time */

struct warden_memory {
	uint32_t number;
	int32_t bytes; /* that could be read */
	char data[WARDEN_MEMORY];
};

#endif
