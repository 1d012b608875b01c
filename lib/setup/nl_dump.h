/* SPDX-License-Identifier: GPL-2.0-only */
/* A netlink dump of a stack, read at the reader's pace; nl_dump.c has the theory. */
#ifndef GUISE_SETUP_NL_DUMP_H
#define GUISE_SETUP_NL_DUMP_H

#include "setup/nl.h"

#define GUISE_NL_DUMP_PIECE 8192 /* bytes of answers that the kernel collects in one call */

struct guise_nl_dump {
	struct guise_stack *s;
	const char *what;
	int fd; /* -1: none */
	size_t at, len;
	char buf[GUISE_NL_DUMP_PIECE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

void guise_nl_dump_init(struct guise_nl_dump *d);
/* Sends a request of guise_nl_begin() with NLM_F_DUMP. what stays the caller's, for sentences. */
int guise_nl_dump_begin(struct guise_nl_dump *d, struct guise_stack *s, int protocol,
			struct guise_nl *m, const char *what);
/*
 * The next answer, which is good until the next call. NULL: there is none, and the dump is
 * closed; *err is 0 or -errno with a sentence.
 */
const struct nlmsghdr *guise_nl_dump_next(struct guise_nl_dump *d, int *err);
/* Also one that was never begun. */
void guise_nl_dump_end(struct guise_nl_dump *d);

/* The next whole message from *at on of len bytes, or NULL; *at moves on. */
const struct nlmsghdr *guise_nl_message(const void *bytes, size_t len, size_t *at);

/*
 * The attributes in len bytes: calls found() for each that is whole, with its type (without
 * flags) and what is in it.
 */
void guise_nl_attributes(const void *bytes, size_t len,
			 void (*found)(void *arg, unsigned int type, const void *data, size_t len),
			 void *arg);

#endif
