/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which TCP connections were opened lately over a stream of frames, and where in
 * the stream their SYN ends. So a sender can recognise a SYN that is sent again
 * before the other end has read the first one.
 *
 * The struct may be in shared memory, and begins as zeroes. One owner at a time. A
 * new connection replaces the oldest one whose key belongs to the same row.
 */
#ifndef GUISE_LINK_OPENINGS_H
#define GUISE_LINK_OPENINGS_H

#include "guise/layout.h"

#define GUISE_OPENINGS_ROWS 1024u
#define GUISE_OPENINGS_ROW  8u

struct guise_openings {
	struct guise_opening {
		uint64_t key;
		uint64_t end; /* of the SYN's frame, in bytes since the stream began */
	} row[GUISE_OPENINGS_ROWS][GUISE_OPENINGS_ROW];
};

/*
 * A key for the addresses and ports of a frame that opens a TCP connection, or 0
 * for any other frame. iov[0] is the virtio-net header; the headers of the frame
 * are in iov[1].
 */
uint64_t guise_opening_key(const struct guise_iov *iov, uint32_t n);

/* Where the last SYN of that connection ended in the stream, or 0 if none is known. */
uint64_t guise_openings_end(const struct guise_openings *o, uint64_t key);
void guise_openings_note(struct guise_openings *o, uint64_t key, uint64_t end);

#endif
