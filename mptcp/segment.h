/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a TCP segment says of Multipath TCP (RFC 8684). The bytes are those of a packet
 * from its IP header on, cut at any place, and may be anything: strangers sent them.
 */
#ifndef GUISE_MPTCP_SEGMENT_H
#define GUISE_MPTCP_SEGMENT_H

#include "address.h"

#include <stddef.h>

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16 };

/* Subtypes of the option. */
enum {
	MP_CAPABLE,
	MP_JOIN,
	MP_DSS,
	MP_ADD_ADDR,
	MP_REMOVE_ADDR,
	MP_PRIO,
	MP_FAIL,
	MP_FASTCLOSE,
	MP_TCPRST,
	MP_SUBTYPES,
	/* Not of the RFC: a DSS that maps all that follows, as after a fallback. */
	MP_INFINITE = MP_SUBTYPES,
	MP_KINDS
};

/* "mp_capable" and so on */
extern const char *const segment_kinds[MP_KINDS];

struct segment {
	struct address from, to;
	uint8_t flags;   /* TCP_x */
	bool data;       /* it carries some */
	uint16_t has;    /* bits 1 << MP_x */
	uint8_t version; /* of MP_CAPABLE */
	uint64_t key;    /* the sender's, in MP_CAPABLE; 0: it has none */
	uint8_t reason;  /* of MP_TCPRST */
};

/* False for what is no TCP segment with a whole header; options that are cut count as missing. */
bool segment_read(struct segment *s, const uint8_t *packet, size_t length);

#endif
