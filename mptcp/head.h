/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The head of an HTTP/1 message, of a request or of an answer: as much of it as this
 * program needs. Strangers sent the bytes.
 */
#ifndef GUISE_MPTCP_HEAD_H
#define GUISE_MPTCP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_MOST 4096 /* bytes of one that is read */
#define HEAD_NAME "guise-check-mptcp"

enum { HEAD_MORE = 0, HEAD_BAD = -1 };

struct head {
	bool request, answer; /* what its first line is */
	bool post;            /* of a request: with that method */
	bool keeps;           /* the connection may stay */
	bool ours;            /* of an answer: this program's */
	uint64_t length;      /* of the body, as far as it says */
	bool says_length;
};

/* The length of a head that is whole, HEAD_MORE, or HEAD_BAD. */
int head_read(struct head *h, const char *bytes, size_t n);

#endif
