/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a process joins the stack of a holder: the messages on the wire. join.c
 * is the joiner's side, serve.c the holder's.
 *
 * The ticket is one end of a SOCK_SEQPACKET pair, inherited by any number of
 * processes; any process that has it has the right to join. A joiner makes a pair of
 * its own and sends one end of it over the ticket, with a request. The holder
 * answers on that private pair, once, with the descriptors of the stack:
 *
 *	region memfd, that of the monitor's records, image file, alive pipe (read end), as many
 *	bells as the answer says, then the descriptors of each link, as many as links[] says
 *
 * The private pair stays open as the member's control channel. It is
 * close-on-exec, so its hang-up tells the holder that the program is gone,
 * whether the process exited or executed another one.
 *
 * A request may be for a process to come, a child or the next program (heir.h). Then the
 * place has no process yet, and the answer has no descriptors. The process that inherits
 * the pair's end reports on it: the child of a fork greets, and needs no answer; a new
 * program enters, and gets what any joiner gets. If the last copy of the end is closed
 * before that, the place is free again.
 *
 * Who has other rights than the stack's user (rights.h) gets no descriptors of the stack. Its
 * servant is started, takes the place, and answers on the same channel. A member that is about
 * to give up rights prepares a place as for a fork and asks there to be served
 * (served/change.c). A program that is served and has got the stack's rights rises to a member in
 * the same way; it is refused if the holder does not find that so.
 *
 * The holder takes the joiner's identity from the host's kernel, not from the request: a
 * message over the ticket has the credentials of its sender, and the pair those of its
 * maker. Both must be the same process.
 */
#ifndef GUISE_REGION_JOIN_H
#define GUISE_REGION_JOIN_H

#include "guise/layout.h"
#include "link/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define GUISE_JOIN_MAGIC     0x6e694f4aU
#define GUISE_JOIN_FIXED_FDS 4

enum guise_join_kind {
	GUISE_JOIN_NOW = 0,
	GUISE_JOIN_HEIR = 1,     /* over the ticket: for a process to come */
	GUISE_JOIN_GREET = 2,    /* over the pair: here it is ... */
	GUISE_JOIN_ENTER = 3,    /* ... and it asks for the stack's descriptors */
	GUISE_JOIN_SERVE = 4,    /* ... and it is to be served, whatever its rights are */
	GUISE_JOIN_RISE = 5,     /* ... and it has a servant already, should it be served */
	GUISE_JOIN_GIVE = 6,     /* to a servant: GUISE_NR_GIVE, with the placeholder */
	GUISE_JOIN_TAKE = 7,     /* ... GUISE_NR_TAKE */
	GUISE_JOIN_IDENTIFY = 8, /* ... the program has another user: the sender's */
	GUISE_JOIN_MAP = 9,      /* ... a copy of a packet socket's ring; served/mirror.h */
	GUISE_JOIN_UNMAP = 10,   /* ... and it is not needed any more */
	GUISE_JOIN_OUTSIDE = 11, /* over the ticket, of no member: struct guise_join_outside */
};

enum guise_outside_why {
	GUISE_INSIDE,
	GUISE_OUTSIDE_STATIC,
	GUISE_OUTSIDE_GO,
	GUISE_OUTSIDE_PRIVILEGED,
	GUISE_OUTSIDE_MACHINE,
	GUISE_OUTSIDE_UNREADABLE, /* it cannot read the preload library */
	GUISE_OUTSIDE_OFF,        /* GUISE_PRELOAD=off, unless it joins by itself */
	GUISE_OUTSIDE_WHYS,
};

/*
 * A joiner that may not map the region gets its answer from its servant, another process, on
 * the same channel; served/ring.h has what they share. Later the program asks its servant for
 * places as others ask the holder, with the ticket.
 */
enum guise_join_served {
	GUISE_JOIN_DIRECT,
	GUISE_JOIN_RING,   /* the descriptors are a ring and its bells */
	GUISE_JOIN_PLACE,  /* the descriptor is the end of a place, for a process to come */
	GUISE_JOIN_MEMORY, /* the descriptor is memory, and result its number for UNMAP */
	GUISE_JOIN_DONE,   /* what was asked is done; result says what the call gave; of IDENTIFY:
			    * the program has the rights of the stack's user */
};

struct guise_join_request {
	uint32_t magic;
	uint32_t abi; /* GUISE_ABI of the joiner's library */
	int32_t pid;  /* as the joiner sees itself; for messages only */
	uint32_t kind;
};

static inline struct guise_join_request guise_join_request(enum guise_join_kind kind)
{
	return (struct guise_join_request){ GUISE_JOIN_MAGIC, GUISE_ABI, getpid(), kind };
}

/* A program that is started on the host's stack, because guise cannot be loaded into it. The
 * holder answers GUISE_JOIN_DONE when it has said so. */
struct guise_join_outside {
	struct guise_join_request request;
	uint32_t why;   /* enum guise_outside_why */
	uint16_t back;  /* it was not started after all: an earlier note is taken back */
	uint16_t quiet; /* it is counted, and not said */
	char program[120];
};

/* To a servant: what a place is to have. The marks (struct guise_mark) lie in the ring. */
struct guise_join_place {
	struct guise_join_request request;
	int32_t keep;   /* a descriptor of the stack, or -1; see heir.h. Of TAKE: its argument */
	uint32_t lane;  /* in whose room they lie */
	uint32_t marks; /* how many */
	uint32_t of;    /* enum guise_join_place_of */
};

enum guise_join_place_of {
	GUISE_PLACE_EXEC,
	GUISE_PLACE_FORK, /* the process that comes has the program's table, and needs no marks */
	GUISE_PLACE_SELF, /* the program itself, which may have the stack's rights now */
};

struct guise_join_reply {
	uint32_t magic;
	uint32_t abi;
	int32_t status;                 /* 0, or -errno with the sentence in error */
	uint32_t proc;                  /* the joiner's place in region->procs */
	uint64_t base;                  /* where the region must be mapped */
	uint32_t fds;                   /* descriptors that come with this message */
	uint8_t links[GUISE_MAX_LINKS]; /* how many of them belong to each link */
	uint32_t bells;                 /* ... and how many wake threads (bell.h) */
	uint32_t links_now;             /* region->links_now, when they were those of all links */
	uint32_t pad;
	uint32_t served; /* enum guise_join_served */
	uint32_t marks;  /* served: how many marks lie in the ring's first room */
	int32_t result;  /* GUISE_JOIN_DONE */
	int32_t tracer;  /* who may trace the joiner, where it must say so (Yama) */
	char error[256];
};

static inline struct guise_join_reply guise_join_reply(enum guise_join_served served)
{
	return (struct guise_join_reply){ .magic = GUISE_JOIN_MAGIC,
					  .abi = GUISE_ABI,
					  .served = served };
}

_Static_assert(sizeof(struct guise_join_request) == 16, "on the wire");
_Static_assert(sizeof(struct guise_join_outside) == 144, "on the wire");
_Static_assert(sizeof(struct guise_join_reply) == 328, "on the wire");

/*
 * Judge a message as it came: its bytes, their number, and how many
 * descriptors came along. 0, or -EPROTO (-EPROTONOSUPPORT: another version)
 * with a sentence. A reply that refuses (status < 0) is well-formed.
 */
int guise_join_check_request(const struct guise_join_request *q, size_t len, int fds);
int guise_join_check_reply(const struct guise_join_reply *r, size_t len, int fds);

/* The joiner's side, in parts. */
struct guise_stack;
struct guise_message;

/*
 * Asks over the ticket: our end of the private pair, and the answer with its descriptors; or
 * -errno with the sentence. Allocates nothing: the child of a vfork may ask.
 */
int guise_join_ask(int ticket, enum guise_join_kind kind, struct guise_join_reply *r,
		   struct guise_message *m);
/* Tells the holder of it, and waits a moment for its answer. Allocates nothing. */
void guise_join_tell(int ticket, const struct guise_join_outside *q);
/* Says on the pair's end that the process has come. 0 or -errno. */
int guise_join_greet(int end);
/* Says so and gets the stack's descriptors. 0; or -errno with the sentence. Allocates nothing. */
int guise_join_arrive(int end, enum guise_join_kind kind, struct guise_join_reply *r,
		      struct guise_message *m);
/* Sends a message, or receives an answer, within the time that a holder is given for it. */
int guise_join_send(int to, const void *data, size_t len, int fd);
int guise_join_receive(int channel, struct guise_join_reply *r, struct guise_message *m);
/* As guise_join(), without counting a program: its caller does that, or the process is the
 * fork of a program that has been counted. */
struct guise_stack *guise_join_uncounted(int ticket, int *err);
/* The stack of a place whose end this program was given. As guise_join(). */
struct guise_stack *guise_join_enter(int end, enum guise_join_kind kind, int *err);

#endif
