/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections of a stack, as its kernel's socket diagnosis tells them. */
#ifndef GUISE_SETUP_CONNECTION_H
#define GUISE_SETUP_CONNECTION_H

#include "setup/nl_dump.h"

struct guise_connection {
	bool mptcp;     /* a Multipath TCP connection, whose subflows are TCP connections; ... */
	bool subflow;   /* ... this is one of them, */
	uint32_t token; /* of the connection that has the same token */
	bool fallback;  /* it was to be Multipath TCP, and is plain TCP */
	bool backup;    /* used when no other subflow is left */
	uint8_t local_id, remote_id; /* of the subflow's addresses */

	uint8_t family, state; /* AF_INET or AF_INET6; Linux's number */
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port;
	uint32_t interface; /* the index of the one that it is bound to, or 0 */
	uint32_t inode, uid;
	uint64_t cookie; /* no other socket of the stack ever has it */

	bool counted;  /* the four that follow are known */
	uint64_t sent; /* bytes of data, those that were sent again included */
	uint64_t acked, received, resent;
	bool measured;                 /* and these */
	uint32_t rtt, rttvar, min_rtt; /* us; min_rtt: 0 until it is known */
	uint32_t cwnd, mss;            /* segments, bytes */
	uint32_t retransmissions;      /* segments */
};

/* Begins to list the connections of a family and protocol (IPPROTO_TCP, IPPROTO_MPTCP) in
 * this thread's namespace, without listeners and those that only wait for their end. */
int guise_connections_begin(struct guise_nl_dump *d, struct guise_stack *s, int family,
			    int protocol);
/* What an answer to that says; false: it is about no connection. */
bool guise_connection_parse(const struct nlmsghdr *h, bool mptcp, struct guise_connection *c);
/* "established"; "unknown" of a number that Linux does not have. */
const char *guise_connection_state(unsigned int state);

#endif
