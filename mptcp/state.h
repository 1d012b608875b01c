/* SPDX-License-Identifier: GPL-2.0-only */
/* What a socket says of its Multipath TCP, and the counters of its network stack. */
#ifndef GUISE_MPTCP_STATE_H
#define GUISE_MPTCP_STATE_H

#include "address.h"

#include <netinet/in.h>
#include <stddef.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define STATE_SUBFLOWS 16

struct subflow {
	struct address local, remote;
	uint64_t sent, received; /* bytes of data, acknowledged and come */
	uint32_t rtt_us, retransmits;
};

struct state {
	bool mptcp;    /* a socket of Multipath TCP, and no longer a plain one of TCP */
	bool fallback; /* it goes on as TCP */
	bool told_addresses, tells_addresses; /* ADD_ADDR accepted, sent */
	unsigned int joined;                  /* subflows beside the first */
	uint32_t token;
	uint64_t sent, received; /* bytes; 0 where the kernel does not count them */
	int n_subflows;
	struct subflow subflow[STATE_SUBFLOWS];
};

void state_read(struct state *s, int fd);

/* MPTcpExt of /proc/net/netstat; what it had to say last. */
struct counters {
	char names[8192], values[8192];
};

void counters_read(struct counters *c);
/* Calls for each counter that has grown. */
void counters_grown(const struct counters *before, const struct counters *after,
		    void (*tell)(void *with, const char *name, uint64_t by), void *with);

#endif
