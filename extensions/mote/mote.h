/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mote, a small datagram protocol, as programs and the kernel see it. mote.c says what it does.
 *
 *	int fd = socket(AF_MOTE, SOCK_DGRAM, 0);
 *	struct sockaddr_mote to = { .family = AF_MOTE, .port = htons(7), .address = ... };
 */
#ifndef GUISE_EXTENSION_MOTE_H
#define GUISE_EXTENSION_MOTE_H

#include <linux/types.h>

/* A family's number must be below AF_MAX, and all are given away. This was Econet's (AF_ECONET),
 * which no Linux has had since 3.5. */
#ifndef AF_MOTE
#define AF_MOTE 19
#endif

/* For experiments (RFC 3692). */
#define IPPROTO_MOTE 253

struct sockaddr_mote {
	__u16 family; /* AF_MOTE */
	__be16 port;
	__be32 address; /* of IPv4 */
};

/* Options: integers, only to be asked for. */
#define SOL_MOTE  253
#define MOTE_LOST 1 /* how many datagrams of the peer did not come; for connected sockets */

/* On the wire, after the header of IPv4. */
struct mote_header {
	__be16 source;
	__be16 destination;
	__be32 number; /* of the sender's datagrams to anyone, from 0 on */
	__be16 length; /* with this header */
	__be16 check;  /* as UDP's, with the addresses */
};

#endif
