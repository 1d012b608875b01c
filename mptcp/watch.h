/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What passes the interfaces of this network stack to and from one TCP port, as far as this
 * process may see it: a packet socket, with a filter so that nothing else is copied. Who may not
 * have one (CAP_NET_RAW on the host) sees nothing, and does without.
 *
 * TCP_SAVE_SYN would not do: Linux does not have it for sockets of Multipath TCP, and a client
 * has no such thing for the answer to its SYN.
 */
#ifndef GUISE_MPTCP_WATCH_H
#define GUISE_MPTCP_WATCH_H

#include "flows.h"

struct watch {
	int fd; /* -1: nothing is seen */
	struct flows flows;
};

void watch_open(struct watch *w, uint16_t port);
/* Takes in what has come. */
void watch_read(struct watch *w);

#endif
