/* SPDX-License-Identifier: GPL-2.0-only */
/* What the values of those fields of a region mean that the port does not know of. */
#ifndef GUISE_REGION_STATE_H
#define GUISE_REGION_STATE_H

#include "guise/layout.h"

/* slot->word, the futex word a host thread sleeps on. */
enum guise_word {
	GUISE_WORD_AWAY = 0,   /* in its program, or inside working */
	GUISE_WORD_SPIN = 1,   /* waits, polling the word */
	GUISE_WORD_FUTEX = 2,  /* waits in futex(2) on the word */
	GUISE_WORD_POLL = 3,   /* waits in ppoll(2): ring the bell */
	GUISE_WORD_KICKED = 4, /* told to come back */
};

/* slot->belled: kicked in ppoll. lib/region/bell.c */
enum {
	GUISE_BELLED = 1,    /* the bell rings until it has seen it */
	GUISE_BELL_LATE = 2, /* has not seen it for long: it will be rung anew */
};

/* slot->still: the tracer's word on a thread since it began to wait */
enum {
	GUISE_STILL = 1,     /* it was stopped: it cannot lead */
	GUISE_CONTINUED = 2, /* and goes on: some calls end by that */
};

/* What a process asks of the holder: proc->ask. */
enum guise_ask {
	GUISE_ASK_NOTHING = 0,
	GUISE_ASK_TRACE = 2,  /* tracing is allowed now */
	GUISE_ASK_LET_GO = 3, /* is to be traced no more */
	GUISE_ASK_ANSWERED = 4,
	GUISE_ASK_IDENTITY =
		5, /* by a servant: whose the program ask_about is. 1: the stack's user's */
	GUISE_ASK_BELLS = 6, /* more bells: it has as many as ask_about says */
	GUISE_ASK_LINKS = 7, /* the descriptors of all links */
};

/* vcpu->pump_word: see pump.c */
enum {
	GUISE_PUMP_AWAKE = 0,
	GUISE_PUMP_SLEEPS = 1,
	GUISE_PUMP_STANDS = 2,
};

#endif
