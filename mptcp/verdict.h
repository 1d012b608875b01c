/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From what was seen of a connection to what it means. Nothing here asks the kernel or the
 * network: evidence goes in, a verdict and its sentences come out.
 */
#ifndef GUISE_MPTCP_VERDICT_H
#define GUISE_MPTCP_VERDICT_H

#include "flows.h"
#include "report.h"
#include "state.h"

#include <stdio.h>

#define EVIDENCE_JOINS 16

struct evidence {
	const char *host; /* as the user named it, with the port */
	struct address local, remote;
	enum {
		WENT_WELL,
		NO_NAME,     /* problem says why */
		NO_SOCKET,   /* this side's kernel makes none of Multipath TCP */
		REFUSED,     /* a reset answered the SYN */
		SILENT,      /* nothing answered it in time */
		UNREACHABLE, /* an ICMP error or no route; error says which */
		BROKE        /* once it was there; error says how */
	} outcome;
	int error;
	const char *problem;
	double patience; /* seconds that an answer was waited for */

	bool connected;
	struct state state; /* the last that could be read */
	bool seen;          /* flow holds what was on the wire */
	struct flow flow;
	uint64_t sent, got; /* bytes of data */
	bool reported;      /* the other end is guise check-mptcp --serve */
	struct report report;

	/* Further paths that this side tried. */
	struct {
		struct address from, to;
		enum { JOINED, JOIN_UNANSWERED, JOIN_REFUSED, JOIN_PLAIN } result;
	} join[EVIDENCE_JOINS];
	int n_joins;
	bool told_addresses; /* an ADD_ADDR came */

	struct counters before, after;
};

enum verdict {
	IS_MPTCP,
	PEER_PLAIN,      /* the other end's kernel answers without the option */
	STRIPPED_SYN,    /* the option went out and did not arrive */
	STRIPPED_ANSWER, /* it was answered, and the answer arrived without */
	PLAIN_OR_STRIPPED,
	STRIPPED_LATER, /* after the handshake */
	DROPPED,        /* only a SYN without the option was answered */
	OTHER_VERSION,
	NOT_END_TO_END, /* something between speaks Multipath TCP in the peer's place */
	NOT_ASKED,      /* this side did not send the option */
	WAS_REFUSED,
	NO_ANSWER,
	NAME_UNKNOWN,
	CONNECTION_BROKE,
	VERDICTS
};

extern const char *const verdict_names[VERDICTS];

enum verdict verdict_of(const struct evidence *e);
int verdict_status(enum verdict v);

/* The headline, without a line's end; then each sentence behind it. */
void verdict_headline(const struct evidence *e, enum verdict v, char *text, size_t size);
void verdict_sentences(const struct evidence *e, enum verdict v,
		       void (*tell)(void *with, const char *sentence), void *with);

/* The whole answer. */
void verdict_print(const struct evidence *e, FILE *out);
void verdict_print_json(const struct evidence *e, FILE *out);

#endif
