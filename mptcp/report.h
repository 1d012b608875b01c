/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the serving end has seen of a connection: lines of a name and values, which the
 * other end reads. Who reads them trusts nothing in them.
 *
 *	guise-check-mptcp 1
 *	protocol mptcp			or tcp, or fallback
 *	from 192.0.2.7:40000		the other end, as it is seen here
 *	syn capable 1			what came; or plain, or unseen
 *	answer capable 1 0123456789abcdef	what was answered, with the sender's key
 *	in mp_capable dss		options that came behind that
 *	out dss				and that went
 *	subflow LOCAL REMOTE		each
 *	bytes 65536			of data that came
 */
#ifndef GUISE_MPTCP_REPORT_H
#define GUISE_MPTCP_REPORT_H

#include "flows.h"
#include "state.h"

#define REPORT_MOST 4096

enum saw { UNSEEN, PLAIN, CAPABLE };

struct report {
	enum { TCP, FALLBACK, MPTCP } protocol;
	struct address from;
	struct {
		enum saw saw;
		uint8_t version;
		uint64_t key;
	} syn, answer;
	uint16_t in, out;
	uint64_t bytes;
	int n_subflows;
	struct address local[STATE_SUBFLOWS], remote[STATE_SUBFLOWS];
};

/* flow: NULL when nothing was seen on the wire */
void report_make(struct report *r, int fd, const struct state *s, const struct flow *flow);
/* The length of the text, which ends with a zero byte. */
size_t report_write(const struct report *r, char text[REPORT_MOST]);
/* False for what is no report; n bytes, of any kind. */
bool report_read(struct report *r, const char *text, size_t n);

#endif
