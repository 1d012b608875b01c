/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TCP connections that were seen on the wire, and what each of their handshakes and
 * later segments said of Multipath TCP. There is room for so many; the one that was
 * quiet for longest makes room for another, so a flood of strangers costs others what was
 * seen of them, and no memory.
 */
#ifndef GUISE_MPTCP_FLOWS_H
#define GUISE_MPTCP_FLOWS_H

#include "segment.h"

#define FLOWS 512

/* A SYN, or the answer to one, with all its repetitions. */
struct hello {
	uint32_t with, without; /* so many had MP_CAPABLE or MP_JOIN, so many neither */
	bool capable, join;
	uint8_t version;
	uint64_t key;
};

/* What else went in one direction. */
struct stream {
	uint16_t has;              /* 1 << MP_x: options of segments that are no SYN */
	uint32_t mapped, unmapped; /* segments with data, with a DSS or MP_CAPABLE, and without */
	bool reset;
	uint8_t reason; /* of an MP_TCPRST */
};

struct flow {
	struct address from, to; /* from is who began it */
	struct hello syn, answer;
	struct stream out, in; /* out: by who began it */
	uint64_t last;         /* 0: unused */
};

struct flows {
	struct flow flow[FLOWS];
	uint64_t clock;
};

void flows_see(struct flows *f, const struct segment *s);
/* In either direction; NULL when it was not seen. */
const struct flow *flows_find(const struct flows *f, const struct address *one,
			      const struct address *other);

#endif
