/* SPDX-License-Identifier: GPL-2.0-only */
/* Name lookups over the stack, by c-ares. */
#ifndef GUISE_PRELOAD_RESOLVER_H
#define GUISE_PRELOAD_RESOLVER_H

#define CARES_NO_DEPRECATED /* Debian 12's c-ares has no newer calls */
#include <ares.h>
#include <stdbool.h>

/* What /etc/resolv.conf and $RES_OPTIONS say that c-ares does not read. */
struct resolver_options {
	int timeout_ms; /* "timeout:N" seconds */
	int attempts;   /* "attempts:N" */
	bool use_vc;    /* "use-vc": TCP only */
};

#define RESOLVER_DEFAULTS { .timeout_ms = 5000, .attempts = 2 } /* as libc's */

/* Takes over the options in text: words after "options", or $RES_OPTIONS. */
void resolver_options_read(struct resolver_options *o, const char *words);
/* A line of resolv.conf; only an "options" line changes o. */
void resolver_options_line(struct resolver_options *o, const char *line);

/*
 * A lookup: open, start one question on the channel (any ares_ call with a
 * callback), run until it is answered, close. A thread is not cancelled in
 * between. flags are ARES_FLAG_*. ARES_SUCCESS, or why there is no channel.
 */
struct resolver {
	ares_channel channel;
	int cancel_state;
};

/* files.c: this thread's reading of /etc/hosts is c-ares's, from now on or no more. */
void resolver_reads_hosts(bool begins);

/* localhost.c: what c-ares is to be asked for name, in room if it is another one. */
#define RESOLVER_NAME_ROOM 256
const char *resolver_name(const char *name, int family, char room[RESOLVER_NAME_ROOM]);

int resolver_open(struct resolver *r, int flags);
void resolver_run(struct resolver *r);
void resolver_close(struct resolver *r);

/* The errors of the calls that use it: EAI_* and h_errno. */
int resolver_eai(int status);
int resolver_h_errno(int status);

#endif
